import type { Browse, Gauge, StoredMessage } from '../transport/transport.ts'
import { withoutDelay } from './ready-since.ts'

/** Numbers and acts of a queue with levels: those of all of them. @param placesOf the queues of its levels, the lowest first */
export function levelledBrowse(
  { gauge, get, cancel, setPaused, purge }: Browse,
  placesOf: (queue: string) => readonly string[],
): Browse {
  const each = <T>(queue: string, act: (place: string) => Promise<T>): Promise<readonly T[]> =>
    Promise.all(placesOf(queue).map(act))
  return {
    gauge: async (queue) => (await each(queue, gauge)).reduce(together),
    ...(get && {
      get: async (queue, id) => {
        const found = await each(queue, (place) => get(place, id))
        const level = found.findIndex((one) => one !== undefined)
        const stored = found[level]
        return stored && atLevel(stored, placesOf(queue).length > 1 ? level : undefined)
      },
    }),
    ...(cancel && {
      cancel: async (queue, id) => (await each(queue, (place) => cancel(place, id))).includes(true),
    }),
    ...(setPaused && {
      setPaused: async (queue, paused) => {
        await each(queue, (place) => setPaused(place, paused))
      },
    }),
    ...(purge && {
      purge: async (queue) => (await each(queue, purge)).reduce((sum, removed) => sum + removed, 0),
    }),
  }
}

function atLevel(stored: StoredMessage, level: number | undefined): StoredMessage {
  if (level === undefined) return stored
  return { ...stored, envelope: { ...withoutDelay(stored.envelope), priority: level } }
}

function together(one: Gauge, other: Gauge): Gauge {
  return {
    depth: sum(one.depth, other.depth),
    scheduled: sum(one.scheduled, other.scheduled),
    inFlight: sum(one.inFlight, other.inFlight),
    dead: sum(one.dead, other.dead),
    ageMs:
      one.ageMs === undefined || other.ageMs === undefined
        ? undefined
        : Math.max(one.ageMs, other.ageMs),
    paused: one.paused || other.paused,
  }
}

function sum(one: number | undefined, other: number | undefined): number | undefined {
  return one === undefined || other === undefined ? undefined : one + other
}
