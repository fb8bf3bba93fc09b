import assert from 'node:assert/strict'
import fc from 'fast-check'
import type { Delivery, Settled, Settlement } from '../../src/model/delivery.ts'
import type { Envelope } from '../../src/model/envelope.ts'
import type { AttemptRecord } from '../../src/model/history.ts'
import {
  assertHistory,
  assertSame,
  enter,
  inState,
  leave,
  type Model,
  type ModelMessage,
  newMessage,
  pick,
  type Real,
  skip,
} from './queue-model.ts'

export type Command = fc.AsyncCommand<Model, Real>

export const LEASE_MS = 7_200_000
export const DELAY_MS = 3_600_000
const note = { actor: 'model', reason: 'a command' }
const attempt: AttemptRecord = {
  at: 1_767_225_600_000,
  errorClass: 'transient',
  code: 'X',
  message: 'x',
}

interface Act {
  readonly name: string
  /** Does it to both; answers nothing, asserts what is special. */
  readonly run: (model: Model, real: Real) => Promise<void>
}

function command({ name, run }: Act): Command {
  return {
    check: () => true,
    async run(model, real) {
      await run(model, real)
      await assertSame(model, real)
    },
    toString: () => name,
  }
}

let made = 0

interface Draft {
  readonly priority: number
  readonly key: string | undefined
}

function send(drafts: readonly Draft[]): Command {
  return command({
    name: `send(${drafts.map(({ priority, key = '' }) => `${priority}${key}`)})`,
    async run(model, { near, queue, signal }) {
      const batch = drafts.map(({ priority, key }): Envelope => {
        made += 1
        const plain = { id: `m${made}`, body: new Uint8Array([1]), headers: {}, priority }
        return key === undefined ? plain : { ...plain, orderingKey: key }
      })
      const sent = await near.send(queue, batch, { signal })
      assert.ok(sent.every((outcome) => outcome.ok && !outcome.duplicate))
      for (const { id, priority, orderingKey } of batch) {
        const message = newMessage(id, priority, orderingKey)
        model.messages.set(id, message)
        enter(model, message)
      }
    },
  })
}

function sendAgain(at: number): Command {
  return command({
    name: `sendAgain(${at})`,
    async run(model, { far, queue, signal }) {
      const known = pick(model, at, 'ready', 'behind', 'scheduled', 'in flight', 'dead')
      if (!known) return
      const again = { id: known.id, body: new Uint8Array([2]), headers: {}, priority: 0 }
      const [sent] = await far.send(queue, [again], { signal })
      assert.deepEqual(sent, { ok: true, id: known.id, duplicate: true })
    },
  })
}

function receive(max: number): Command {
  return command({
    name: `receive(${max})`,
    async run(model, { held, signal, subscription }) {
      const ready = model.paused ? [] : inState(model, 'ready')
      const batch = await subscription.receive({ max, waitMs: 0, signal })
      assertAllowed(ready, batch, max)
      for (const delivery of batch) {
        const message = model.messages.get(delivery.envelope.id)
        assert.ok(message)
        assert.equal(delivery.alone, message.alone)
        assertHistory(message, delivery.history)
        message.state = 'in flight'
        message.inLimbo = false
        held.set(message.id, delivery)
      }
    },
  })
}

/** Suspects first and one at a time; else the highest priorities, as many as were asked for. */
function assertAllowed(
  ready: readonly ModelMessage[],
  batch: readonly Delivery[],
  max: number,
): void {
  const suspects = ready.filter(({ alone }) => alone)
  if (suspects.length > 0) {
    assert.equal(batch.length, 1)
    assert.ok(suspects.some(({ id }) => id === batch[0]?.envelope.id))
    return
  }
  assert.equal(batch.length, Math.min(max, ready.length))
  const best = ready.map(({ priority }) => priority).sort((a, b) => b - a)
  assert.deepEqual(
    batch.map(({ envelope }) => envelope.priority),
    best.slice(0, batch.length),
  )
}

function settle(
  name: string,
  at: number,
  act: (delivery: Delivery) => Settlement,
  follow: (message: ModelMessage, model: Model) => void,
): Command {
  return command({
    name: `${name}(${at})`,
    async run(model, { held, subscription, zombies }) {
      const message = pick(model, at, 'in flight')
      const delivery = message && held.get(message.id)
      if (!delivery) return
      assertOk(await subscription.settle([act(delivery)]))
      held.delete(message.id)
      zombies.push(delivery)
      follow(message, model)
    },
  })
}

function ack(at: number): Command {
  const act = (delivery: Delivery): Settlement => ({ as: 'acked', delivery })
  return settle('ack', at, act, (message, model) => leave(model, message, 'gone'))
}

function release(at: number, counted: boolean, delayed: boolean): Command {
  const delayMs = delayed ? DELAY_MS : 0
  const act = (delivery: Delivery): Settlement =>
    counted
      ? { as: 'released', delivery, delayMs, counted, attempt }
      : { as: 'released', delivery, delayMs, counted }
  return settle(
    `release${counted ? 'Counted' : ''}${delayed ? 'Later' : ''}`,
    at,
    act,
    (message) => {
      message.state = delayed ? 'scheduled' : 'ready'
      if (!counted) return
      message.counted += 1
      message.records += 1
      message.alone = false
    },
  )
}

function die(at: number): Command {
  const act = (delivery: Delivery): Settlement => ({
    as: 'dead',
    delivery,
    reason: 'no',
    errorClass: 'permanent',
  })
  return settle('die', at, act, (message, model) => leave(model, message, 'dead'))
}

function zombie(at: number): Command {
  return command({
    name: `zombie(${at})`,
    async run(_model, { subscription, zombies }) {
      const late = zombies[at % Math.max(1, zombies.length)]
      if (!late) return
      const [outcome] = await subscription.settle([
        { as: 'released', delivery: late, delayMs: 0, counted: true },
      ])
      assert.equal(outcome && !outcome.ok && outcome.fault.code, 'lost')
    },
  })
}

/** All that is held is lost: its leases run out. */
function expire(): Command {
  return command({
    name: 'expire()',
    async run(model, { held, leaseMs, passes, subscription, zombies }) {
      if (held.size === 0) return
      assertOk((await subscription.renew?.([...held.values()], leaseMs)) ?? [])
      await passes(leaseMs + 100)
      for (const message of inState(model, 'in flight')) {
        message.state = 'ready'
        message.counted += 1
        message.crashes += 1
        message.records += 1
        message.alone = true
        message.inLimbo = true
      }
      zombies.push(...held.values())
      held.clear()
    },
  })
}

/** Time goes by until everything that is scheduled is due; what is held is kept by renewal. */
function wait(): Command {
  return command({
    name: 'wait()',
    async run(model, { held, passes, subscription }) {
      if (held.size > 0) assertOk((await subscription.renew?.([...held.values()], LEASE_MS)) ?? [])
      await passes(DELAY_MS)
      for (const message of inState(model, 'scheduled')) message.state = 'ready'
    },
  })
}

function redrive(at: number): Command {
  return command({
    name: `redrive(${at})`,
    async run(model, { far, queue }) {
      const message = pick(model, at, 'dead')
      const ids = [message?.id ?? 'nobody']
      assert.deepEqual(await far.shelf?.redrive(queue, ids, note), message ? ids : [])
      if (!message) return
      enter(model, message)
      message.counted = 0
      message.crashes = 0
      message.redrives += 1
      message.alone = false
    },
  })
}

function discard(at: number): Command {
  return command({
    name: `discard(${at})`,
    async run(model, { far, queue }) {
      const message = pick(model, at, 'dead')
      if (!message) return
      assert.deepEqual(await far.shelf?.discard(queue, [message.id], note), [message.id])
      message.state = 'gone'
      const { key = '', id } = message
      if (model.halted.get(key) === id) skip(model, key)
    },
  })
}

function skipKey(key: string): Command {
  return command({
    name: `skip(${key})`,
    async run(model, { far, queue }) {
      const expected = model.halted.has(key) ? [key] : []
      assert.deepEqual(await far.haltedKeys?.skip(queue, [key], note), expected)
      skip(model, key)
    },
  })
}

function cancel(at: number): Command {
  return command({
    name: `cancel(${at})`,
    async run(model, { far, held, queue, zombies }) {
      const states = ['ready', 'behind', 'scheduled', 'in flight', 'dead', 'gone'] as const
      const message = pick(model, at, ...states)
      if (!message) return
      const there = message.state !== 'dead' && message.state !== 'gone'
      assert.equal(await far.browse?.cancel?.(queue, message.id), there)
      if (!there) return
      const delivery = held.get(message.id)
      if (delivery) zombies.push(delivery)
      held.delete(message.id)
      leave(model, message, 'gone')
      message.inLimbo = false
    },
  })
}

function setPaused(paused: boolean): Command {
  return command({
    name: paused ? 'pause()' : 'resume()',
    async run(model, { far, queue }) {
      await far.browse?.setPaused?.(queue, paused)
      model.paused = paused
    },
  })
}

function purge(): Command {
  return command({
    name: 'purge()',
    async run(model, { far, queue }) {
      const purged = await far.browse?.purge?.(queue)
      let gone = 0
      // What waits behind others goes first: none of a key moves up only to be removed.
      for (const message of inState(model, 'ready', 'scheduled', 'behind').sort(behindFirst)) {
        if (message.inLimbo && (await far.browse?.get?.(queue, message.id))) continue
        leave(model, message, 'gone')
        message.inLimbo = false
        gone += 1
      }
      assert.equal(purged, gone)
    },
  })
}

function behindFirst(a: ModelMessage, b: ModelMessage): number {
  return Number(b.state === 'behind') - Number(a.state === 'behind')
}

function assertOk(outcomes: readonly Settled[]): void {
  for (const outcome of outcomes) assert.equal(outcome.ok || outcome.fault.code, true)
}

export interface CommandOptions {
  /** Time can be moved, so scheduled messages can fall due. */
  readonly movable: boolean
  readonly maxCommands: number
  /** How many levels the transport has. */
  readonly priorities: number
}

export function commands({
  movable,
  maxCommands,
  priorities,
}: CommandOptions): fc.Arbitrary<Iterable<Command>> {
  const at = fc.nat(30)
  const priority = fc.integer({ min: 0, max: priorities - 1 })
  const key = fc.constantFrom('a', 'b')
  const draft = fc.record({ priority, key: fc.oneof(fc.constant(undefined), key) })
  // fast-check draws evenly, so what leads to interesting states stands here more than once.
  const kinds: readonly (readonly [number, fc.Arbitrary<Command>])[] = [
    [4, fc.array(draft, { minLength: 1, maxLength: 4 }).map(send)],
    [1, at.map(sendAgain)],
    [8, fc.integer({ min: 1, max: 5 }).map(receive)],
    [2, at.map(ack)],
    [4, fc.tuple(at, fc.boolean(), fc.boolean()).map((args) => release(...args))],
    [2, at.map(die)],
    [1, at.map(zombie)],
    [3, fc.constant(expire())],
    [2, at.map(redrive)],
    [1, at.map(discard)],
    [1, key.map(skipKey)],
    [1, at.map(cancel)],
    [1, fc.constant(setPaused(true))],
    [3, fc.constant(setPaused(false))],
    [1, fc.constant(purge())],
    [movable ? 2 : 0, fc.constant(wait())],
  ]
  const weighted = kinds.flatMap(([weight, kind]) => Array.from({ length: weight }, () => kind))
  return fc.commands(weighted, { maxCommands, size: 'max' })
}
