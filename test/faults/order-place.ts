import { DatabaseSync } from 'node:sqlite'
import { type App, createMillrace, defineQueue, type Logger, silentLogger } from 'millrace'
import { sqliteInbox } from 'millrace/inbox'
import { sqlite } from 'millrace/sqlite'
import { sqliteStore } from 'millrace/store'
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
  | {
      readonly kind: 'rabbitmq'
      readonly url: string | readonly string[]
      readonly prefix: string
      readonly file: string
      readonly storeFile: string
    }
  | {
      readonly kind: 'kafka' | 'sqs'
      readonly url: string
      readonly prefix: string
      readonly file: string
      readonly storeFile: string
    }
  | {
      readonly kind: 'nats'
      readonly url: string | readonly string[]
      readonly prefix: string
      readonly file: string
      /** 3 on a cluster. */
      readonly replicas?: number
    }

export const stepPayload = z.object({ key: z.string(), number: z.number() })

const common = {
  name: 'steps',
  owner: 'team',
  payload: stepPayload,
  idempotencyKey: ({ key, number }: z.output<typeof stepPayload>) => `${key} ${number}`,
  orderingKey: ({ key }: { readonly key: string }): string => key,
  /** The lease is as short as it gets, 5 s and this. */
  handlerTimeoutMs: 200,
  retry: { attempts: 20, baseMs: 20, maxMs: 100 },
  capacity: 'unbounded',
} as const

/** Who died of kills is redriven to the front of its key, which waits for it. */
const halting = defineQueue({ ...common, onDead: 'halt-key' })
/** Who died of kills is left out, where no key can be halted. */
const going = defineQueue({ ...common, onDead: 'continue' })

/** None can halt a key. */
const BROKERS: readonly OrderPlace['kind'][] = ['nats', 'rabbitmq', 'kafka', 'sqs']

export interface OpenedPlace {
  readonly app: App<DatabaseSync>
  readonly steps: typeof halting | typeof going
  readonly db: DatabaseSync
}

export async function openPlace(
  place: OrderPlace,
  logger: Logger = silentLogger,
): Promise<OpenedPlace> {
  const db = new DatabaseSync(place.file, { timeout: 10_000 })
  db.exec('PRAGMA journal_mode = WAL')
  db.exec('CREATE TABLE IF NOT EXISTS step (at INTEGER PRIMARY KEY, key TEXT, number INTEGER)')
  const transport = await transportOf(place)
  const steps = BROKERS.includes(place.kind) ? going : halting
  const kept = 'storeFile' in place && { store: sqliteStore({ file: place.storeFile }) }
  const options = { queues: [steps], logger, inbox: sqliteInbox({ db }), ...kept }
  return { app: await createMillrace({ ...options, transport }), db, steps }
}

async function transportOf(place: OrderPlace) {
  switch (place.kind) {
    case 'sqlite':
      return sqlite({ file: place.file })
    case 'redis': {
      const { redis } = await import('millrace/redis')
      return redis({ url: place.url, prefix: place.prefix })
    }
    case 'nats': {
      const { nats } = await import('millrace/nats')
      // Fewer lanes than keys, so that keys share them; a killed worker's are back soon.
      const { url: servers, prefix, replicas = 1 } = place
      return nats({ servers, prefix, replicas, lanes: 8, ackWaitMs: 2_000 })
    }
    case 'rabbitmq': {
      const { rabbitmq } = await import('millrace/rabbitmq')
      // Who is stopped is noticed by the broker after two or three of its heartbeats.
      const { url, prefix } = place
      return rabbitmq({ url, prefix, lanes: 5, heartbeatMs: 1_000, delays: false })
    }
    case 'kafka': {
      const { kafka } = await import('millrace/kafka')
      // Fewer partitions than keys; a killed worker is noticed at the end of its session.
      const quick = { sessionTimeoutMs: 3_000, heartbeatMs: 200, revokeDrainMs: 500 }
      const at = { brokers: place.url.split(','), prefix: place.prefix, partitions: 5 }
      return kafka({ ...at, ...quick, retry: 'hold' })
    }
    case 'sqs': {
      const { sqs } = await import('millrace/sqs')
      const credentials = { accessKeyId: 'test', secretAccessKey: 'test' }
      const at = { endpoint: place.url, region: 'us-east-1', credentials }
      return sqs({ ...at, kind: 'fifo', prefix: place.prefix })
    }
    case 'postgres': {
      const { postgres } = await import('millrace/postgres')
      return postgres({ url: place.url, schema: place.schema })
    }
  }
}
