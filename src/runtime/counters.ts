import type { QueueCounters } from './app.ts'

/** Counters of one queue in this process, since the start. */
export type Counting = { -readonly [Name in keyof QueueCounters]: number }

export function counting(): Counting {
  return {
    sent: 0,
    started: 0,
    acked: 0,
    released: 0,
    dead: 0,
    duplicates: 0,
    abandoned: 0,
    lost: 0,
    shed: 0,
  }
}
