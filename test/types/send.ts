// Compiled, never run: each expected error fails the build once the mistake compiles.
import { type App, defineQueue, type SendResult } from 'millrace'
import { z } from 'zod'
import { type Equal, same } from './equal.ts'

declare const app: App

const mails = defineQueue({
  name: 'mails',
  owner: 'team-types',
  payload: z.object({ to: z.string(), sentAt: z.string().transform((text) => new Date(text)) }),
  // The key function gets the output of the schema.
  idempotencyKey: (payload) => payload.sentAt.toISOString(),
})

const mail = { to: 'ada', sentAt: '2026-01-01' }

export async function right(): Promise<void> {
  const sent = await app.send(mails, { to: 'ada', sentAt: '2026-01-01' }, { delayMs: 5 })
  same<Equal<typeof sent, SendResult>>()
  const all = await app.sendBatch(mails, [{ to: 'ada', sentAt: '2026-01-01' }], { priority: 3 })
  same<Equal<typeof all, readonly SendResult[]>>()
  await app.send(mails, { to: 'ada', sentAt: '2026-01-01' }, { readyAt: new Date(), tx: {} })
  // An adapter that is written in place gets its parameters typed; anything else is taken too, of whatever type.
  await app.send(mails, mail, {
    tx: {
      execute: async (sql, params) => {
        same<Equal<typeof sql, string>>()
        same<Equal<typeof params, readonly unknown[]>>()
        return []
      },
    },
  })
  await app.sendBatch(mails, [mail], { tx: { execute: (sql, params) => [{ sql, params }] } })
  // The functions that give each message of a batch its keys get what is sent.
  await app.sendBatch(mails, [{ to: 'ada', sentAt: '2026-01-01' }], {
    idempotencyKey: (payload, index) => `${payload.to}-${index}`,
    dedupeKey: (payload) => payload.sentAt,
  })
}

export async function inSome<Tx>(tx: Tx, unsaid: unknown): Promise<void> {
  await app.send(mails, mail, { tx })
  await app.send(mails, mail, { tx: unsaid })
}

export async function wrong(): Promise<void> {
  // @ts-expect-error a field is missing
  await app.send(mails, { to: 'ada' })
  // @ts-expect-error a field has another type
  await app.send(mails, { to: 5, sentAt: '2026-01-01' })
  // @ts-expect-error what is sent is the schema's input, not its output
  await app.send(mails, { to: 'ada', sentAt: new Date() })
  // @ts-expect-error a field too many
  await app.send(mails, { to: 'ada', sentAt: '2026-01-01', cc: 'bob' })
  // @ts-expect-error one of a batch is wrong
  await app.sendBatch(mails, [{ to: 'ada', sentAt: '2026-01-01' }, { to: 'bob' }])
  // @ts-expect-error no such option
  await app.send(mails, { to: 'ada', sentAt: '2026-01-01' }, { delay: 5 })
  // @ts-expect-error an id is for one message
  await app.sendBatch(mails, [], { id: 'x' })
  // @ts-expect-error a queue is sent to by its definition, so that the payload is checked
  await app.send('mails', { to: 'ada', sentAt: '2026-01-01' })
}

export function definitions(): void {
  // @ts-expect-error without an owner nobody watches the dead letters
  defineQueue({ name: 'a', payload: z.string() })
  // @ts-expect-error a payload is checked at run time, too: a schema, not a type
  defineQueue({ name: 'a', owner: 'b' })
  // @ts-expect-error jitter cannot be switched off
  defineQueue({ name: 'a', owner: 'b', payload: z.string(), retry: { jitter: 'none' } })
  // @ts-expect-error keys are texts
  defineQueue({ name: 'a', owner: 'b', payload: z.number(), idempotencyKey: (payload) => payload })
}
