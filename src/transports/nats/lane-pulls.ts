import type { Cancel } from '../../model/clock.ts'
import { openBell } from '../../transport/bell.ts'
import type { Ends } from '../../transport/ends.ts'
import { type Arriving, giveBack, RETRY_MS } from './arriving.ts'
import type { Held } from './held.ts'
import { ANSWER_MS, openLines } from './lines.ts'
import type { Pulls } from './pulls.ts'

/** Between a receive that brought something and the next one, as long as requests go on waiting. */
const LINGER_MS = 100

/**
 * Of a queue with lanes. A message that is pulled holds its lane, so requests wait only while the worker has room. What comes beyond
 * it all the same, because several lanes that had nothing had something at once, goes back at once.
 */
export function lanePulls(parts: Arriving): Pulls {
  const { clock } = parts.store
  const bell = openBell<0>(clock)
  const tray: Held[] = []
  let lingering: Cancel | undefined
  let receives = 0
  /** How many more the worker can run. */
  let room = 0
  let broken: { readonly error: unknown } | undefined
  const lines = openLines(parts, {
    came: (held) => void tray.push(...held),
    failed(error) {
      broken = { error }
    },
    changed: () => bell.ring(0),
  })
  /** The longest that it may take to ask everywhere. */
  const roundMs = RETRY_MS + parts.sources.length * ANSWER_MS

  const stop = (): readonly Held[] => {
    lingering?.()
    lines.stop()
    return tray.splice(0)
  }
  const stopAndGiveBack = (): void => {
    // What cannot be given back comes again when its ack wait has run out.
    giveBack(parts, stop()).catch(() => {})
  }

  const receive = async (max: number, waitMs: number, ends: Ends): Promise<readonly Held[]> => {
    const startedAt = clock.now()
    const endAt = startedAt + waitMs
    while (!ends.reached()) {
      const since = bell.rings(0)
      const error = broken
      broken = undefined
      if (error !== undefined) throw error.error
      if (tray.length > 0) return tray.splice(0, max)
      const lookAt = lines.ask(room)
      const now = clock.now()
      const isAsked = lookAt === Number.POSITIVE_INFINITY || now >= startedAt + roundMs
      if (now >= endAt && isAsked && !lines.isComing()) return []
      const wakeAt = now < endAt ? Math.min(endAt, lookAt) : lookAt
      await bell.wait(0, since, Math.max(1, wakeAt - now), ends.signal())
    }
    return []
  }

  return {
    async next(max, waitMs, ends) {
      lingering?.()
      room = receives === 0 ? max : room + max
      receives += 1
      let taken = 0
      try {
        const held = await receive(max, waitMs, ends)
        taken = held.length
        return held
      } finally {
        receives -= 1
        room -= taken
        if (receives === 0) {
          if (taken === 0 || room <= 0) stopAndGiveBack()
          else lingering = clock.after(LINGER_MS, stopAndGiveBack)
        }
      }
    },
    stop,
  }
}
