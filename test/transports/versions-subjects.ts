import { defineQueue } from 'millrace'
import type { Inbox } from 'millrace/inbox'
import { z } from 'zod'
import { quoteIdentifier } from '../../src/sql/pg-name.ts'
import { type InboxSubject, postgresInboxClients, sqliteInboxClients } from './inbox-subjects.ts'

export const steps = defineQueue({
  name: 'steps',
  owner: 'team',
  payload: z.object({ entity: z.number().int(), version: z.number().int() }),
})

export interface Step {
  readonly entity: number
  readonly version: number
}

export interface VersionsBench {
  readonly inbox: Inbox<unknown>
  readonly subject: InboxSubject
  /** For the helpers: where their tables are. */
  readonly schema: string
  readonly table: string
  dispose(): Promise<void>
}

export const clients = [...sqliteInboxClients, ...postgresInboxClients()]

export async function openVersions(open: () => Promise<InboxSubject>): Promise<VersionsBench> {
  const subject = await open()
  const schema = 'schema' in subject ? String(subject.schema) : 'millrace'
  const inbox = await subject.connect()
  return {
    inbox,
    subject,
    schema,
    table: 'schema' in subject ? `${quoteIdentifier(schema)}.effect` : 'effect',
    async dispose() {
      await inbox.close()
      await subject.dispose()
    },
  }
}

let runs = 0

/** One run of a message in the inbox, under a key of its own: what `ctx.tx` does. */
export async function run<T>(
  { inbox }: VersionsBench,
  effect: (tx: unknown) => T | Promise<T>,
): Promise<T> {
  runs += 1
  const outcome = await inbox.run(
    { queue: 'steps', key: `run-${runs}` },
    { leaseMs: 30_000, effect, last: () => true },
  )
  if (outcome.kind !== 'committed') throw new Error(`the run ended as ${outcome.kind}`)
  return outcome.value
}

export function messageOf({ entity, version }: Step) {
  return message(entity, version)
}

export function message(entity: number, version: number) {
  return { payload: { entity, version }, sentAt: 1_000 + version }
}

/** The row of one step: entities lie a thousand apart. */
export function rowOf({ entity, version }: Step): number {
  return entity * 1_000 + version
}
