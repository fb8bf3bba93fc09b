import { appendFileSync } from 'node:fs'
import { postgresStore, redisStore, type Store, sqliteStore } from 'millrace/store'
import { pause, systemClock } from '../../src/model/clock.ts'
import { connectStore } from '../stores/store-harness.ts'

/** Where a store is, for a process that gets it as an argument. */
export type StoreSpec =
  | { readonly kind: 'sqlite'; readonly file: string }
  | { readonly kind: 'postgres'; readonly url: string; readonly schema: string }
  | { readonly kind: 'redis'; readonly url: string; readonly prefix: string }

export const QUEUE = 'q'
/** How long what a killed process had in its hands stays with it. */
export const HOLD_MS = 300
const HOUR_MS = 3_600_000

export async function openStoreOf(spec: StoreSpec): Promise<Store> {
  switch (spec.kind) {
    case 'sqlite':
      return await connectStore(sqliteStore({ file: spec.file }))
    case 'postgres':
      return await connectStore(postgresStore({ url: spec.url, schema: spec.schema }))
    case 'redis':
      return await connectStore(redisStore({ url: spec.url, prefix: spec.prefix }))
  }
}

/** Takes due messages, sends them (a line in the file), and only then says that they were sent. Reserves a key for each. */
async function relay(spec: StoreSpec, sentFile: string): Promise<void> {
  const store = await openStoreOf(spec)
  const clock = systemClock()
  for (;;) {
    const taken = await store.delayed.take(QUEUE, { max: 3, leaseMs: HOLD_MS })
    if (taken.length === 0) {
      if ((await store.delayed.count(QUEUE)) === 0) break
      await pause(clock, 20)
      continue
    }
    const keyed = taken.map(({ envelope: { id } }) => ({
      id,
      keys: [{ kind: 'dedupe', key: id, fingerprint: undefined, windowMs: HOUR_MS } as const],
    }))
    const reserved = await store.keys.reserve(QUEUE, keyed, HOLD_MS)
    for (const [at, { id }] of keyed.entries()) {
      if (reserved[at]?.as === 'reserved') appendFileSync(sentFile, `${id}\n`)
    }
    await store.keys.confirm(QUEUE, keyed)
    await store.delayed.sent(QUEUE, taken)
  }
  await store.close()
}

const [, script, specText, sentFile] = process.argv
if (script?.endsWith('store-child.ts') && specText !== undefined && sentFile !== undefined) {
  await relay(JSON.parse(specText), sentFile)
}
