import assert from 'node:assert/strict'
import { test } from 'node:test'
import { memory } from 'millrace/memory'
import type { Envelope } from '../../src/model/envelope.ts'
import { stored } from '../../src/transport/outcomes.ts'
import type { Transaction } from '../../src/transport/transport.ts'
import { closeNow, type StageOptions, stage } from './stage.ts'

/** A memory whose transactions belong to nobody, and what is sent in them. */
async function scene() {
  const store = memory()
  const sent: [tx: string, ids: number, atomic: boolean][] = []
  const transport: StageOptions['transport'] = {
    ...store,
    connect: async (context) => ({
      ...(await store.connect(context)),
      transaction: (tx): Transaction => ({
        synchronous: false,
        send: async (_queue, batch: readonly Envelope[], options) => {
          const atomic = options?.atomic === true
          sent.push([String(Reflect.get(Object(tx), 'name')), batch.length, atomic])
          return batch.map(({ id }) => stored(id))
        },
        ack: async () => [],
      }),
    }),
  }
  return { ...(await stage({ transport })), sent }
}

test('sends of one transaction are gathered within it, and never with those of another', async () => {
  const { app, clock, queue, sent } = await scene()
  const [one, two] = [{ name: 'one' }, { name: 'two' }]
  const both = [one, two, one, two, one].map((tx, i) =>
    app.send(queue, { orderId: `o${i}` }, { tx: tx as never }),
  )
  await Promise.all(both)
  assert.deepEqual(sent, [
    ['one', 3, false],
    ['two', 2, false],
  ])
  await closeNow(app, clock)
})

test('a batch in a transaction is all or nothing there', async () => {
  const { app, clock, queue, sent } = await scene()
  const payloads = ['a', 'b', 'c'].map((orderId) => ({ orderId }))
  await app.sendBatch(queue, payloads, { tx: { name: 'one' } as never })
  assert.deepEqual(sent, [['one', 3, true]])
  await closeNow(app, clock)
})
