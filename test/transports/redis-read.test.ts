import assert from 'node:assert/strict'
import { test } from 'node:test'
import { envelope, open, signal, subscribeTo } from './redis-bench.ts'
import { NO_REDIS, redisServers } from './redis-servers.ts'

// The ids of what is handed out together come as one text, a line each.

const servers = redisServers()

test('Redis is there.', { skip: servers.length > 0 ? false : NO_REDIS }, () => {})

for (const { name, url } of servers) {
  for (const odd of ['two', 'two\nlines', '\n']) {
    test(`Each message has its own id and body, also beside the id ${JSON.stringify(odd)} of another producer (${name}).`, async () => {
      const bench = await open(url)
      const add = ['XADD', bench.key('ready'), '*']
      const body = (text: string): Uint8Array => new TextEncoder().encode(text)
      await bench.transport.send('q', [envelope('first', { body: body('1') })], { signal })
      await bench.raw.sendCommand([...add, 'id', odd, 'body', '2'])
      const headers = { h: 'v' }
      const third = envelope('third', { body: body('3'), headers })
      await bench.transport.send('q', [third], { signal })
      const entryId = String(await bench.raw.sendCommand([...add, 'n', '4']))
      await bench.transport.send('q', [envelope('fifth', { body: body('5') })], { signal })
      const subscription = await subscribeTo(bench.transport)
      const batch = await subscription.receive({ max: 10, waitMs: 20_000, signal })
      const text = ({ body }: { readonly body: Uint8Array }): string => Buffer.from(body).toString()
      assert.deepEqual(
        batch.map(({ envelope: one }) => [one.id, text(one), { ...one.headers }]),
        [
          ['first', '1', {}],
          [odd, '2', {}],
          ['third', '3', headers],
          [entryId, '{"n":"4"}', {}],
          ['fifth', '5', {}],
        ],
      )
      const acks = batch.map((delivery) => ({ as: 'acked', delivery }) as const)
      assert.ok((await subscription.settle(acks)).every(({ ok }) => ok))
      assert.equal(await bench.raw.sendCommand(['XLEN', bench.key('ready')]), 0)
      await bench.dispose()
    })
  }
}
