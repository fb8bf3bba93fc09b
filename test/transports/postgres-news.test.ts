import assert from 'node:assert/strict'
import { test } from 'node:test'
import { postgres } from 'millrace/postgres'
import { systemClock } from '../../src/model/clock.ts'
import { silentLogger } from '../../src/model/logger.ts'
import { envelope, open, signal } from './postgres-bench.ts'
import { NO_SERVER, postgresServers } from './postgres-servers.ts'

const servers = postgresServers()
if (servers.length === 0) test('postgres news', { skip: NO_SERVER }, () => {})

/** Longer than the test: only news ends a wait. */
const LONG_MS = 60_000

for (const { name, url } of servers) {
  test(`${name}: a redrive by another process wakes who waits for a message`, {
    timeout: 20_000,
  }, async (t) => {
    const { transport: other, schema, dispose } = await open(url)
    t.after(dispose)
    const transport = await postgres({ url, schema, pollMs: LONG_MS }).connect({
      ...{ signal, clock: systemClock(), random: Math.random, logger: silentLogger },
      migrate: 'check',
    })
    t.after(() => transport.close())
    const from = await transport.subscribe('q', { group: 'g', leaseMs: LONG_MS, maxInFlight: 1 })
    await transport.send('q', [envelope('m1')], { signal })
    const [delivery] = await from.receive({ max: 1, waitMs: LONG_MS, signal })
    assert.ok(delivery)
    await from.settle([{ as: 'dead', delivery, errorClass: 'permanent', reason: 'no' }])
    const next = from.receive({ max: 1, waitMs: LONG_MS, signal })
    await new Promise((resolve) => setImmediate(resolve))
    const note = { actor: 'someone', reason: 'test' }
    assert.deepEqual(await other.shelf?.redrive('q', ['m1'], note), ['m1'])
    assert.deepEqual(
      (await next).map(({ envelope: { id } }) => id),
      ['m1'],
    )
  })
}
