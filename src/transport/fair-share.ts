/**
 * Fairness between keys, by self-clocked fair queueing (Golestani, 1994): each message gets a place when it becomes ready, and lines
 * of one priority go by place. The places of a key lie `1 / weight` apart, and a key that has none waiting begins just behind the
 * front. So a message of such a key is handed out after at most `weight of other / its weight + 1` messages of each other key, however many
 * of those wait. What is ready is all the state there is: a key of which nothing waits is not remembered.
 */

export const WEIGHT_MIN = 0.01
export const WEIGHT_MAX = 100

export interface FairSituation {
  /** The place of the first message in line; undefined when none waits. */
  readonly front: number | undefined
  /** The last place of this key in line. */
  readonly last: number | undefined
}

export function fairPlace({ front = 0, last = 0 }: FairSituation, weight = 1): number {
  return Math.max(front, last) + 1 / weight
}

/** What an envelope says of its share. */
export interface Share {
  readonly fairKey?: string
  readonly fairWeight?: number
}

export function isShare({ fairKey, fairWeight = 1 }: Share): boolean {
  if (fairKey === undefined) return fairWeight === 1
  return fairKey !== '' && fairWeight >= WEIGHT_MIN && fairWeight <= WEIGHT_MAX
}

/** The fields of a share that are there. */
export function shareOf({ fairKey, fairWeight }: Share): Share {
  if (fairKey === undefined) return {}
  return fairWeight === undefined ? { fairKey } : { fairKey, fairWeight }
}
