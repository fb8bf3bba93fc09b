import type { Socket } from 'node:net'

/** `up` is from the client to the server. */
export type Direction = 'up' | 'down'

export interface Pump {
  /** From now on what comes is thrown away. */
  block(): void
  /** After so many bytes more nothing is read: what comes fills the buffers of the systems, and then the source has to wait. */
  stopAfter(bytes: number): void
}

/** What is under way when it is slow; with more the source has to wait. */
const MAX_LATE_BYTES = 1_048_576

interface Late {
  readonly dueAt: number
  readonly bytes: number
  act(): void
}

/** Passes on what one side sends, in order, and that it has ended; what the other does not take waits at the source. */
export function pump(from: Socket, to: Socket, delayMs: () => number, hangUp: () => void): Pump {
  const late: Late[] = []
  let lateBytes = 0
  let blocked = false
  let full = false
  let left = Number.POSITIVE_INFINITY
  const flow = (): void =>
    void (left <= 0 || full || lateBytes > MAX_LATE_BYTES ? from.pause() : from.resume())
  // One timer for all: two timers that are due at about the same time end in any order.
  const actWhenDue = (): void => {
    for (let first = late[0]; first !== undefined; first = late[0]) {
      const waitMs = first.dueAt - performance.now()
      if (waitMs > 0) {
        setTimeout(actWhenDue, waitMs)
        return
      }
      late.shift()
      lateBytes -= first.bytes
      first.act()
      flow()
    }
  }
  const inOrder = (bytes: number, act: () => void): void => {
    const wait = delayMs()
    if (wait === 0 && late.length === 0) {
      act()
      return
    }
    late.push({ dueAt: performance.now() + wait, bytes, act })
    lateBytes += bytes
    flow()
    if (late.length === 1) actWhenDue()
  }
  const pass = (chunk: Buffer): void => {
    if (blocked || to.destroyed || to.write(chunk)) return
    full = true
    flow()
    to.once('drain', () => {
      full = false
      flow()
    })
  }
  from.on('data', (chunk) => {
    left -= chunk.length
    if (!blocked) inOrder(chunk.length, () => pass(chunk))
    flow()
  })
  from.on('end', () => (blocked ? hangUp() : inOrder(0, () => to.end())))
  return {
    block() {
      blocked = true
    },
    stopAfter(bytes) {
      left = bytes
      flow()
    },
  }
}
