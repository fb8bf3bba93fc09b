import { LEVELS, type QueueKeys } from './keys.ts'

/**
 * A queue has a stream of its own, one for suspects, one for each level of priority above 0, and one for turns of fair keys. A claim says at its end which of them it
 * is of, and a reference to an entry where it begins; see `CLAIMS` and `place_of` in the scripts.
 */
const SUSPECTS = { ending: '!', mark: 's' } as const
const TURNS = { ending: '~', mark: 't' } as const
const LEVEL = { ending: '^', mark: 'p' } as const

/** What stands before the entry ids of this claim: a text, empty for the queue's own stream. */
export function markOf(claim: string): string {
  if (claim.endsWith(SUSPECTS.ending)) return SUSPECTS.mark
  if (claim.endsWith(TURNS.ending)) return TURNS.mark
  return claim.at(-2) === LEVEL.ending ? `${LEVEL.mark}${claim.at(-1)}` : ''
}

/** A name of a claim as it ends where the entries with this mark are. */
export function claimAt(claim: string, mark: string): string {
  if (mark === '') return claim
  if (mark === SUSPECTS.mark) return claim + SUSPECTS.ending
  return claim + (mark === TURNS.mark ? TURNS.ending : `${LEVEL.ending}${mark.slice(1)}`)
}

/** All claims that one receive may have made under this name. */
export function claimsOf(claim: string): readonly string[] {
  const levels = Array.from({ length: LEVELS - 1 }, (_, below) => `${LEVEL.mark}${below + 1}`)
  return ['', SUSPECTS.mark, TURNS.mark, ...levels].map((mark) => claimAt(claim, mark))
}

export interface Place {
  readonly mark: string
  readonly entryId: string
}

export function placeOf(reference: string): Place {
  const [mark] = reference
  const at = mark === LEVEL.mark ? 2 : mark === SUSPECTS.mark || mark === TURNS.mark ? 1 : 0
  return { mark: reference.slice(0, at), entryId: reference.slice(at) }
}

export function streamOf(queue: QueueKeys, mark: string): string {
  if (mark === '') return queue.stream
  if (mark === TURNS.mark) return queue.turns
  return mark === SUSPECTS.mark ? queue.suspects : queue.level(Number(mark.slice(1)))
}
