import assert from 'node:assert/strict'
import { test } from 'node:test'
import { memory } from 'millrace/memory'
import type { Envelope } from '../../src/model/envelope.ts'
import { stored } from '../../src/transport/outcomes.ts'
import type { Transaction } from '../../src/transport/transport.ts'
import { closeNow, type StageOptions, stage } from './stage.ts'

test('sends of one transaction are gathered within it, and never with those of another', async () => {
  const store = memory()
  const sent: [tx: string, ids: number][] = []
  const transport: StageOptions['transport'] = {
    ...store,
    connect: async (context) => ({
      ...(await store.connect(context)),
      transaction: (tx): Transaction => ({
        synchronous: false,
        send: async (_queue, batch: readonly Envelope[]) => {
          sent.push([String(Reflect.get(Object(tx), 'name')), batch.length])
          return batch.map(({ id }) => stored(id))
        },
        ack: async () => [],
      }),
    }),
  }
  const { app, clock, queue } = await stage({ transport })
  const [one, two] = [{ name: 'one' }, { name: 'two' }]
  const both = [one, two, one, two, one].map((tx, i) =>
    app.send(queue, { orderId: `o${i}` }, { tx: tx as never }),
  )
  await Promise.all(both)
  assert.deepEqual(sent, [
    ['one', 3],
    ['two', 2],
  ])
  await closeNow(app, clock)
})
