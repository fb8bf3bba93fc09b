import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { type Connector, createMillrace, defineQueue, silentLogger } from 'millrace'
import { sqliteInbox } from 'millrace/inbox'
import { kafka } from 'millrace/kafka'
import { sqliteStore } from 'millrace/store'
import { z } from 'zod'

/** Travels to the child process as JSON. */
export interface Place {
  readonly brokers: string
  readonly run: string
  readonly storeFile: string
  readonly effectsFile: string
  readonly runsFile: string
  /** `copied`: first attempts fail, and a copy waits in the store. `dead`: each attempt makes its message dead. */
  readonly ends: 'copied' | 'dead'
}

export function queueOf({ run }: Place) {
  return defineQueue({
    ...{ name: `between-${run}`, owner: 'team-chaos', payload: z.object({ n: z.number() }) },
    // Long enough that copies still wait in the store when it is looked at after the death, also on a busy machine.
    retry: { attempts: 5, baseMs: 3_000, maxMs: 3_000 },
    idempotencyKey: ({ n }) => `between-${n}`,
    capacity: 'unbounded',
  })
}

export async function appOn(place: Place, wrap = (connector: Connector): Connector => connector) {
  const db = new DatabaseSync(place.effectsFile, { timeout: 10_000 })
  db.exec('PRAGMA journal_mode = WAL; CREATE TABLE IF NOT EXISTS effect (n INTEGER)')
  const app = await createMillrace({
    transport: wrap(
      kafka({
        ...{ brokers: place.brokers, retry: 'park', partitions: 1 },
        ...{ sessionTimeoutMs: 1_500, heartbeatMs: 100, revokeDrainMs: 100 },
      }),
    ),
    store: sqliteStore({ file: place.storeFile }),
    inbox: sqliteInbox({ db }),
    queues: [queueOf(place)],
    logger: silentLogger,
  })
  const effects = (): readonly number[] =>
    db
      .prepare('SELECT n FROM effect')
      .all()
      .map(({ n }) => Number(n))
  return { app, effects }
}

export function noteRun({ runsFile }: Place, n: number): void {
  appendFileSync(runsFile, `${n}\n`)
}

export function runs({ runsFile }: Place): readonly number[] {
  if (!existsSync(runsFile)) return []
  return readFileSync(runsFile, 'utf8').trim().split('\n').map(Number)
}
