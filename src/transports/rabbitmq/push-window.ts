/**
 * How much the broker may push. It begins with all that the worker may have in flight, which is the fastest. Once messages had
 * to be given back because nobody asked for them, only what is asked for: a message held for a slow worker is late for
 * others, and each return counts towards a delivery limit before 4.3. A worker that asks quickly again leaves that.
 */
export interface PushWindow {
  /** A receive asks for so many. */
  ask(max: number): void
  limit(): number
  /** Whether a consumer with this much room left holds up what was asked for. */
  isTooSmall(room: number): boolean
  taken(now: number): void
  givenBack(): void
  resize(maxInFlight: number): void
}

/** Of a queue, in messages (AMQP 0-9-1, basic.qos). */
const PREFETCH_MAX = 65_535
const QUICK_IN_A_ROW = 50

/** @param quickMs two receives that follow each other within this long are quick */
export function pushWindow(maxInFlight: number, quickMs: number): PushWindow {
  let most = Math.min(PREFETCH_MAX, maxInFlight)
  let asked = most
  let modest = false
  let quick = 0
  let lastAt = Number.NEGATIVE_INFINITY
  return {
    ask(max) {
      asked = max
    },
    limit: () => (modest ? Math.min(most, Math.max(1, asked)) : most),
    isTooSmall: (room) => modest && room < Math.min(most, asked),
    taken(now) {
      if (!modest) return
      quick = now - lastAt < quickMs ? quick + 1 : 0
      lastAt = now
      modest = quick < QUICK_IN_A_ROW
    },
    givenBack() {
      modest = true
      quick = 0
    },
    resize(next) {
      most = Math.min(PREFETCH_MAX, Math.max(1, next))
    },
  }
}
