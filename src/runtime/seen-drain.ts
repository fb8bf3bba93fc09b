/**
 * What leaves a queue that others work: from two totals of the backend and what was sent in between. What other processes sent meanwhile
 * is not known here and makes it look slower, so a sender comes back rather too late than too early.
 */
export interface SeenDrain {
  sent(messages: number): void
  /** The last known, 0 when there is none; looks again in the background when that is old. */
  perSecond(): number
}

/** Between two looks. Shorter and the total hardly moves; a gauge costs the backend a count. */
const LOOK_MS = 1_000
const FORGET_MS = 60_000

export function seenDrain(now: () => number, total: () => Promise<number>): SeenDrain {
  let sentSince = 0
  let last: { readonly at: number; readonly total: number } | undefined
  let perSecond = 0
  let looking = false

  const look = async (): Promise<void> => {
    const sent = sentSince
    const at = now()
    const read = await total()
    const known = last !== undefined && at - last.at <= FORGET_MS ? last : undefined
    if (known !== undefined && at > known.at) {
      perSecond = Math.max(0, ((known.total + sent - read) * 1_000) / (at - known.at))
    } else perSecond = 0
    sentSince -= sent
    last = { at, total: read }
  }

  return {
    sent: (messages) => {
      sentSince += messages
    },
    perSecond: () => {
      const age = last === undefined ? Number.POSITIVE_INFINITY : now() - last.at
      if (age >= LOOK_MS && !looking) {
        looking = true
        // A backend that cannot be asked tells its senders itself.
        look()
          .catch(() => undefined)
          .finally(() => {
            looking = false
          })
      }
      return age > FORGET_MS ? 0 : perSecond
    },
  }
}
