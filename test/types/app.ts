// Compiled, never run.
import type { DatabaseSync } from 'node:sqlite'
import {
  type App,
  createMillrace,
  type DeadLetterView,
  defineConfig,
  defineQueue,
  defineWorker,
  type ErrorClass,
  PermanentError,
  type QueueFullError,
  silentLogger,
  ThrottledError,
  TransientError,
} from 'millrace'
import { sqliteInbox } from 'millrace/inbox'
import { memory } from 'millrace/memory'
import { sqlite } from 'millrace/sqlite'
import { z } from 'zod'
import { type Equal, same } from './equal.ts'

const orders = defineQueue({
  name: 'orders',
  owner: 'team-types',
  payload: z.object({ n: z.number() }),
})

export async function inboxDecidesTx(): Promise<void> {
  const app = await createMillrace({
    transport: sqlite({ file: 'a.db' }),
    queues: [orders],
    inbox: sqliteInbox({ file: 'a.db' }),
    onDeadLetter: (letter) => same<Equal<typeof letter, DeadLetterView>>(),
  })
  same<Equal<typeof app, App<DatabaseSync>>>()
  app.work(orders, (_message, ctx) => ctx.tx((tx) => tx.prepare('SELECT 1').get()))
  const { items, cursor } = await app.admin.deadLetters.list(orders, { errorClass: 'permanent' })
  same<Equal<typeof cursor, string | null>>()
  for (const item of items) same<Equal<typeof item.errorClass, ErrorClass>>()
  await app.admin.deadLetters.redrive('orders', { ids: ['a'] })
  await app.admin.deadLetters.redrive(orders, { filter: { errorClass: 'transient' }, dryRun: true })
  // @ts-expect-error a redrive says what it means
  await app.admin.deadLetters.redrive(orders, {})
  // @ts-expect-error a discard has a reason
  await app.admin.deadLetters.discard(orders, { ids: ['a'] })
  // @ts-expect-error no such class
  await app.admin.deadLetters.list(orders, { errorClass: 'fatal' })
}

export async function refused(): Promise<void> {
  // @ts-expect-error no transport
  await createMillrace({ queues: [orders] })
  // @ts-expect-error no such option
  await createMillrace({ transport: memory(), queues: [orders], retries: 5 })
  // @ts-expect-error a file or a handle
  sqlite({})
}

export function errors(): void {
  new TransientError('why', { cause: new Error('x'), delayMs: 5 })
  new PermanentError('why', { cause: 'x' })
  new ThrottledError('why', { retryAfterMs: 5 })
  same<Equal<QueueFullError['retryAfterMs'], number>>()
  // @ts-expect-error a permanent failure has no delay
  new PermanentError('why', { delayMs: 5 })
}

export default defineConfig({
  transport: sqlite({ file: 'a.db' }),
  queues: [orders],
  inbox: sqliteInbox({ file: 'a.db' }),
  workers: [
    defineWorker(orders, async (message) => {
      same<Equal<typeof message.payload, { n: number }>>()
    }),
  ],
  // All that the intake takes, not a part of it.
  intake: { host: '::1', queues: ['orders'], maxBodyBytes: 1_000, logger: silentLogger },
})

// @ts-expect-error: no option of the intake
defineConfig({ transport: memory(), queues: [orders], intake: { prt: 80 } })
