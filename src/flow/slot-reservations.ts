import { type Cancel, type Clock, pause } from '../model/clock.ts'
import type { HeldSlot } from '../store/slots.ts'
import type { SlotFound } from './slot-asks.ts'

/**
 * Slots that are waited for without the message in hand. One that was in the hands of a worker that died must not be there again
 * before it runs: were that worker killed by something else, too, it would be dead of crashes without ever having run. So it goes back,
 * and a slot is asked for in its place; the slot waits for the message, not the message for the slot.
 */
export interface SlotReservations {
  /** What there is for it at once; undefined: it comes again in a while. */
  ask(id: string, key: string | undefined): Promise<SlotFound | undefined>
  /** All that are held go back, and nothing is kept from now on. */
  stop(): void
}

export interface SlotReservationsOptions {
  readonly clock: Clock
  readonly ask: (key: string | undefined) => Promise<SlotFound>
  readonly release: (slot: HeldSlot) => void
}

/** A store answers within this, where a slot is free. */
const AT_ONCE_MS = 250
/** A message that comes again after a second, in this process or another one, finds its slot; then others may have it. */
const KEPT_MS = 3_000
/** Messages of dead workers. Beyond this they come again and ask anew. */
const RESERVED_MAX = 100

interface Reservation {
  /** Undefined as long as nobody has said. */
  found: SlotFound | undefined
  cancel: Cancel | undefined
}

export function slotReservations(options: SlotReservationsOptions): SlotReservations {
  const { clock, release } = options
  const reserved = new Map<string, Reservation>()
  let isStopped = false

  const end = (id: string, one: Reservation): void => {
    one.cancel?.()
    if (reserved.get(id) === one) reserved.delete(id)
  }

  const keep = (id: string, one: Reservation, found: SlotFound): void => {
    one.found = found
    if (found.as !== 'held') {
      end(id, one)
      return
    }
    const giveBack = (): void => {
      end(id, one)
      release(found.slot)
    }
    if (isStopped) giveBack()
    else one.cancel = clock.after(KEPT_MS, giveBack)
  }

  const reserve = async (id: string, key: string | undefined): Promise<SlotFound | undefined> => {
    const one: Reservation = { found: undefined, cancel: undefined }
    reserved.set(id, one)
    const asked = options.ask(key)
    const answered = new AbortController()
    const first = await Promise.race([asked, pause(clock, AT_ONCE_MS, answered.signal)])
    answered.abort()
    if (first === undefined) void asked.then((found) => keep(id, one, found))
    else end(id, one)
    return first ?? undefined
  }

  return {
    async ask(id, key) {
      const one = reserved.get(id)
      if (one === undefined) {
        return isStopped || reserved.size >= RESERVED_MAX ? undefined : reserve(id, key)
      }
      if (one.found !== undefined) end(id, one)
      return one.found
    },
    stop() {
      isStopped = true
      for (const [id, one] of [...reserved]) {
        end(id, one)
        if (one.found?.as === 'held') release(one.found.slot)
      }
    },
  }
}
