// A producer and a worker on NATS JetStream: npx node examples/nats/main.ts [nats://127.0.0.1:4222]
import { createMillrace, defineQueue, PermanentError } from 'millrace'
import { nats } from 'millrace/nats'
import { sqliteStore } from 'millrace/store'
import { z } from 'zod'

const orders = defineQueue({
  name: 'example-orders',
  owner: 'team-shop', // who watches the dead letters
  payload: z.object({ item: z.string() }),
  retry: { attempts: 5, baseMs: 200 },
})
const open = new Set(['book', 'lamp', 'piano'])
const done = Promise.withResolvers<void>()
const redriven = Promise.withResolvers<unknown>()
let isPianoThere = false

const app = await createMillrace({
  transport: nats({ servers: process.argv[2] ?? 'nats://127.0.0.1:4222' }),
  store: sqliteStore({ file: 'orders.db' }), // keeps what the broker cannot; see README.md
  queues: [orders],
  onDeadLetter: ({ id, reason }) => {
    console.log(`dead letter: ${reason}`)
    isPianoThere = true
    redriven.resolve(app.admin.deadLetters.redrive(orders, { ids: [id] }))
  },
})
app.work(orders, ({ payload: { item }, attempt }) => {
  if (item === 'lamp' && attempt === 1) throw new Error('the warehouse does not answer') // tried again
  if (item === 'piano' && !isPianoThere) throw new PermanentError('no piano in stock') // dead at once
  console.log(`${item}: packed at attempt ${attempt}`)
  if (open.delete(item) && open.size === 0) done.resolve()
})
await app.start()
await app.sendBatch(orders, [{ item: 'book' }, { item: 'lamp' }, { item: 'piano' }])
await Promise.all([done.promise, redriven.promise])
await app.close()
