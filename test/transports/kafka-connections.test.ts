import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import * as module from '@platformatic/kafka'
import { type Clock, systemClock } from '../../src/model/clock.ts'
import { anyBroker, ask, type Client, closeClient } from '../../src/transports/kafka/client.ts'
import { resolve } from '../../src/transports/kafka/options.ts'
import { backendUrl } from '../backends.ts'
import { until } from './until.ts'

const brokers = backendUrl('kafka')
const { signal: closing } = new AbortController()
const options = resolve({ brokers: brokers ?? '' })
const clock = systemClock()

/** Every limit is over at once: before a connection can have come about. */
const hurried: Clock = {
  now: clock.now,
  after: (_, run) => {
    run()
    return () => {}
  },
}

function opened(t: TestContext): Client {
  const client: Client = new module.Producer<Buffer, Buffer, Buffer, Buffer>({
    ...{ clientId: 'connections', bootstrapBrokers: (brokers ?? '').split(',') },
    ...{ connectTimeout: 60_000, retries: 0 },
  })
  t.after(() => closeClient({ clock }, client))
  return client
}

async function broker() {
  const client = new module.Producer<Buffer, Buffer, Buffer, Buffer>({
    ...{ clientId: 'look', bootstrapBrokers: (brokers ?? '').split(',') },
  })
  try {
    return await anyBroker({ clock, options, closing, asking: client, random: () => 0 })
  } finally {
    await client.close()
  }
}

if (brokers !== undefined) {
  test('A question that is given up while its connection comes about leaves that to the next one, and a close ends.', async (t) => {
    const client = opened(t)
    const call = { client, broker: await broker(), what: 'a look' }
    const { api } = module.metadataV12
    const look = (withClock: Clock) =>
      ask({ ...call, cluster: { clock: withClock, options, closing } }, api, [], false, false)
    await assert.rejects(look(hurried), /a look took longer/)
    const answer = await look(clock)
    assert.ok(answer.brokers.length > 0)
    let isClosed = false
    void client.close().then(() => {
      isClosed = true
    })
    await until('the close', () => isClosed, 5_000)
  })

  test('A client whose connections do not end is waited for no longer than two seconds.', async () => {
    const waits: number[] = []
    const watched: Clock = {
      now: clock.now,
      after: (ms, run) => {
        waits.push(ms)
        return clock.after(0, run)
      },
    }
    const connections = new module.ConnectionPool('stuck')
    const stuck = { connections, close: () => new Promise<void>(() => {}) }
    await closeClient({ clock: watched }, stuck)
    assert.deepEqual(waits, [2_000])
  })
}
