import { DatabaseSync } from 'node:sqlite'
import { type App, createMillrace, defineQueue, silentLogger } from 'millrace'
import { sqliteInbox } from 'millrace/inbox'
import { sqlite } from 'millrace/sqlite'
import { z } from 'zod'

/** Where the messages are; travels to the workers as JSON. Effects and inbox are in the file, whatever carries them. */
export type OrderPlace =
  | { readonly kind: 'sqlite'; readonly file: string }
  | { readonly kind: 'redis'; readonly url: string; readonly prefix: string; readonly file: string }
  | {
      readonly kind: 'postgres'
      readonly url: string
      readonly schema: string
      readonly file: string
    }

/** The lease is as short as it gets, 5 s and this. Who died of kills is redriven to the front of its key, which waits for it. */
export const steps = defineQueue({
  name: 'steps',
  owner: 'team',
  payload: z.object({ key: z.string(), number: z.number() }),
  orderingKey: ({ key }) => key,
  onDead: 'halt-key',
  handlerTimeoutMs: 200,
  retry: { attempts: 20, baseMs: 20, maxMs: 100 },
  capacity: 'unbounded',
})

export interface OpenedPlace {
  readonly app: App<DatabaseSync>
  readonly db: DatabaseSync
}

export async function openPlace(place: OrderPlace): Promise<OpenedPlace> {
  const db = new DatabaseSync(place.file, { timeout: 10_000 })
  db.exec('PRAGMA journal_mode = WAL')
  db.exec('CREATE TABLE IF NOT EXISTS step (at INTEGER PRIMARY KEY, key TEXT, number INTEGER)')
  const transport = await transportOf(place)
  const common = { queues: [steps], logger: silentLogger, inbox: sqliteInbox({ db }) }
  return { app: await createMillrace({ ...common, transport }), db }
}

async function transportOf(place: OrderPlace) {
  switch (place.kind) {
    case 'sqlite':
      return sqlite({ file: place.file })
    case 'redis': {
      const { redis } = await import('millrace/redis')
      return redis({ url: place.url, prefix: place.prefix })
    }
    case 'postgres': {
      const { postgres } = await import('millrace/postgres')
      return postgres({ url: place.url, schema: place.schema })
    }
  }
}
