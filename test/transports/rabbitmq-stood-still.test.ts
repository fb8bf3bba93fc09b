import assert from 'node:assert/strict'
import { test } from 'node:test'
import { rabbitmq } from 'millrace/rabbitmq'
import { systemClock } from '../../src/model/clock.ts'
import type { Delivery } from '../../src/model/delivery.ts'
import { silentLogger } from '../../src/model/logger.ts'
import type { Subscription } from '../../src/transport/transport.ts'
import { backendUrl } from '../backends.ts'
import {
  deleteLanes,
  envelope,
  freshName,
  never,
  subscribe,
  take,
  withChannel,
} from './rabbitmq-subjects.ts'
import { until } from './until.ts'

const url = backendUrl('rabbitmq')

/** Longer than two heartbeats. */
const STOOD_STILL_MS = 3_600_000
const LANES = 2

for (const ordered of url === undefined ? [] : [false, true]) {
  const address = url ?? assert.fail()
  const kind = ordered ? 'a queue in order' : 'a queue'
  test(`rabbitmq: what a process had from ${kind} is over as soon as it wakes up, before anybody told it, and comes again on another connection`, async (t) => {
    const name = freshName('stood still')
    const system = systemClock()
    let asleepMs = 0
    const clock = { ...system, now: () => system.now() + asleepMs }
    const warned: string[] = []
    const logger = { ...silentLogger, warn: (message: string) => void warned.push(message) }
    const transport = await rabbitmq({ url: address, delays: false, lanes: LANES }).connect({
      ...{ signal: never, clock, random: Math.random, logger, migrate: 'auto' },
    })
    t.after(async () => {
      await transport.close()
      await withChannel(address, async (channel) => {
        if (ordered) await deleteLanes(channel, name, LANES)
        else await channel.deleteQueue(name)
      })
    })
    const side = ordered ? (transport.ordered ?? assert.fail()) : transport
    await side.topology.ensure(
      [{ name, owner: 'team-test', maxDepth: undefined, ...(ordered && { ordered }) }],
      never,
    )
    const one = envelope(ordered ? { orderingKey: 'k' } : {})
    await side.send(name, [one], { signal: never })
    const from = await subscribe(side, name)
    const [held] = await take(from, 1)
    assert.ok(held)
    assert.equal(held.claim.isOver?.(), false)
    assert.equal(held.claim.lost.aborted, false)
    asleepMs = STOOD_STILL_MS
    assert.equal(held.claim.isOver?.(), true)
    await until('its signal to tell it', () => held.claim.lost.aborted)
    assert.deepEqual(warned.filter((said) => /this process stood still/.test(said)).length, 1)
    const again = await comesAgain(from)
    assert.equal(again.envelope.id, one.id)
    assert.equal(again.claim.isOver?.(), false)
    const [late] = await from.settle([{ as: 'acked', delivery: held }])
    assert.equal(late?.ok, false)
    await until('it to be acked', async () => {
      const [settled] = await from.settle([{ as: 'acked', delivery: again }])
      return settled?.ok === true
    })
  })
}

/** While there is no connection a receive is refused. */
async function comesAgain(from: Subscription): Promise<Delivery> {
  const all: Delivery[] = []
  await until('it to come again', async () => {
    const more = await from.receive({ max: 1, waitMs: 100, signal: never }).catch(() => [])
    all.push(...more)
    return all.length > 0
  })
  return all[0] ?? assert.fail()
}
