import type { Clock } from '../model/clock.ts'
import type { Fault } from '../model/fault.ts'
import type { Logger } from '../model/logger.ts'
import type { Store } from '../store/store.ts'
import type { Traits } from '../transport/traits.ts'
import type { Transport } from '../transport/transport.ts'
import { copies } from './copies.ts'
import { deadLetters } from './dead-letters.ts'
import { delays } from './delays.ts'
import { journals } from './journals.ts'
import { pauses } from './pauses.ts'
import { rememberedKeys } from './remembered-keys.ts'

export interface LayeredOptions {
  /** Undefined: only what needs none is layered; see `storeNeeds`. */
  readonly store: Store | undefined
  readonly clock: Clock
  readonly logger: Logger
  readonly random: () => number
}

/** Shorter than the longest that a retry may wait by default (an hour), and than a throttled one (a day). */
const DELAY_NEEDED_MS = 86_400_000

/** What this transport lacks that only a store can bring, a phrase each; empty when it lacks nothing. */
export function storeNeeds({ traits }: Transport): readonly string[] {
  const isOrdered = traits.order !== 'none'
  return [
    ...(isOrdered && !traits.keepsHistory
      ? ['the attempts of messages that stay in their order']
      : []),
    ...(!isOrdered && lacksDelay(traits) ? ['delays and backoff of up to a day'] : []),
    ...(traits.deadLetters === 'none' ? ['dead letters that can be listed and redriven'] : []),
  ]
}

/**
 * The transport with every layer on top that its traits call for, innermost first: delays, copies (journals where an order is
 * kept, which a copy or a delay would break), dead letters, remembered keys, pauses. One that lacks nothing comes back as it is.
 */
export function layered(transport: Transport, options: LayeredOptions): Transport {
  const { store, clock, logger, random } = options
  let top = transport
  const isOrdered = top.traits.order !== 'none'
  if (store !== undefined && !isOrdered && lacksDelay(top.traits)) {
    top = delays(top, { store, clock, logger })
  }
  if (!top.traits.keepsHistory && top.traits.settles === 'each') {
    if (!isOrdered) top = copies(top)
    else if (store !== undefined) top = journals(top, store)
  }
  if (store === undefined) return top
  if (top.traits.deadLetters === 'none') top = deadLetters(top, { store, clock, random })
  if (top.traits.dedupe === 'none' || top.traits.dedupe.windowMs !== 'any') {
    top = rememberedKeys(top, store, clock)
  }
  if (top.browse !== undefined && top.browse.setPaused === undefined) {
    top = pauses(top, store, clock)
  }
  if (top === transport) return top
  return { ...top, diagnose: (error) => diagnosed(error, transport, store) }
}

/** Either of the two may have thrown it. */
function diagnosed(error: unknown, transport: Transport, store: Store): Fault {
  const fault = transport.diagnose(error)
  return fault.code === 'unknown' ? store.diagnose(error) : fault
}

function lacksDelay({ delay }: Traits): boolean {
  return delay === 'none' || delay.maxMs < DELAY_NEEDED_MS
}
