import type { Clock } from '../../model/clock.ts'
import type { Client } from './client.ts'
import type { QueueNames } from './names.ts'

/** The server's clock, as far as we can tell from here. */
export interface ServerClock {
  /** Epoch ms by the server. Asks it when it was not asked for a minute; then two round trips. */
  now(names: QueueNames): Promise<number>
}

const TRUST_MS = 60_000

/**
 * Servers before 2.10 do not tell their time, but every stored message has the moment when it was stored. One is written
 * over and over, and read again; half of the way to and fro is the error.
 */
export function openServerClock(client: Client, clock: Clock): ServerClock {
  let known: { readonly offsetMs: number; readonly at: number } | undefined
  return {
    async now(names) {
      if (known === undefined || clock.now() - known.at > TRUST_MS || clock.now() < known.at) {
        const before = clock.now()
        await client.manager.jetstream().publish(names.fact('clock'), '')
        const between = clock.now()
        const stored = await client.manager.streams.getMessage(names.shelf, {
          last_by_subj: names.fact('clock'),
        })
        if (stored !== null) {
          known = { offsetMs: stored.time.getTime() - (before + between) / 2, at: clock.now() }
        }
      }
      return clock.now() + (known?.offsetMs ?? 0)
    },
  }
}
