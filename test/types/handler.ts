// Compiled, never run.
import { type } from 'arktype'
import { type App, defineQueue, type SendResult } from 'millrace'
import * as v from 'valibot'
import { z } from 'zod'
import { type Equal, same } from './equal.ts'

declare const app: App<{ readonly mine: true }>

const identity = { owner: 'team-types' } as const
const ofZod = defineQueue({
  ...identity,
  name: 'zod',
  payload: z.object({
    at: z.string().transform((text) => new Date(text)),
    n: z.number().default(1),
  }),
})
const ofValibot = defineQueue({
  ...identity,
  name: 'valibot',
  payload: v.object({
    at: v.pipe(
      v.string(),
      v.transform((text) => new Date(text)),
    ),
    n: v.number(),
  }),
})
const ofArktype = defineQueue({
  ...identity,
  name: 'arktype',
  payload: type({ at: 'string.date.parse', n: 'number' }),
})

export function handlers(): void {
  app.work(ofZod, async ({ payload }) => {
    same<Equal<typeof payload, { at: Date; n: number }>>()
  })
  app.work(ofValibot, async ({ payload }) => {
    same<Equal<typeof payload, { at: Date; n: number }>>()
  })
  app.work(ofArktype, async ({ payload }) => {
    same<Equal<typeof payload, { at: Date; n: number }>>()
  })
  app.work(
    ofZod,
    async (message, ctx) => {
      same<Equal<typeof message.id, string>>()
      same<Equal<typeof message.attempt, number>>()
      same<Equal<typeof message.idempotencyKey, string>>()
      same<Equal<typeof message.sentAt, number>>()
      same<Equal<typeof message.headers, Readonly<Record<string, string>>>>()
      same<Equal<typeof ctx.signal, AbortSignal>>()
      const answer = await ctx.tx((tx) => {
        same<Equal<typeof tx, { readonly mine: true }>>()
        return 7
      })
      same<Equal<typeof answer, number>>()
      const later = await ctx.tx(async () => 'text')
      same<Equal<typeof later, string>>()
      const sent = await ctx.send(ofValibot, { at: '2026-01-01', n: 1 })
      same<Equal<typeof sent, SendResult>>()
      // @ts-expect-error the payload of another queue
      await ctx.send(ofValibot, { at: '2026-01-01' })
    },
    { concurrency: 50 },
  )
  // @ts-expect-error a field that the payload lacks
  app.work(ofZod, async ({ payload }) => payload.missing)
  // @ts-expect-error payloads are not written to
  app.work(ofZod, async (message) => (message.payload = { at: new Date(), n: 1 }))
  // @ts-expect-error no such option
  app.work(ofZod, async () => {}, { parallel: 5 })
}

export async function senders(): Promise<void> {
  // A default makes a field optional for the sender, and present for the handler.
  await app.send(ofZod, { at: '2026-01-01' })
  await app.send(ofValibot, { at: '2026-01-01', n: 1 })
  await app.send(ofArktype, { at: '2026-01-01', n: 1 })
  // @ts-expect-error valibot's input
  await app.send(ofValibot, { at: new Date(), n: 1 })
  // @ts-expect-error arktype's input
  await app.send(ofArktype, { at: '2026-01-01', n: '1' })
}
