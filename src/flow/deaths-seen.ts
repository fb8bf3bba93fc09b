/** Whether this tells of a death that was not counted yet. `at`: when its message was missed, `now`: both epoch ms. */
export type DeathsSeen = (at: number, now: number) => boolean

/** What a worker had in hand when it died is missed at about the same moment. */
const SAME_DEATH_MS = 1_000
const REMEMBERED_MAX = 1_000

/**
 * Tells deaths from the messages that come back from them: one worker may have had a thousand in its hands, and one of them may begin
 * again and again before anything else becomes of it. A death from before the window says nothing of now.
 */
export function deathsSeen(windowMs: number): DeathsSeen {
  let seen: readonly number[] = []
  return (at, now) => {
    if (at <= now - windowMs) return false
    if (seen.some((other) => Math.abs(other - at) < SAME_DEATH_MS)) return false
    seen = [...seen.filter((other) => other > now - windowMs), at].slice(-REMEMBERED_MAX)
    return true
  }
}
