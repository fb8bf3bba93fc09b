import type { Classification } from '../model/classify.ts'
import type { Clock } from '../model/clock.ts'
import type { AttemptHistory } from '../model/history.ts'
import type { Logger } from '../model/logger.ts'
import type { Store } from '../store/store.ts'
import type { SlotSettings } from './adapt-slots.ts'
import { consumerSwitch } from './consumer-switch.ts'
import type { KillSwitchSettings } from './kill-switch.ts'
import type { Meter } from './meter.ts'
import { type QueueSight, slotControl } from './slot-control.ts'

/** What the worker of one queue asks before it takes more, and tells of its runs. */
export interface QueueFlow {
  /** How many handlers may run side by side now; 0 while the consumer is stopped. */
  slots(): number
  /** Right before a handler starts; `history` is that of its message. */
  began(history: AttemptHistory): Ticket
  /** Once its outcome is decided and its slot is free. */
  ended(ticket: Ticket): void
  /** What the outcome was. A failure may be one that is not the message's: then what to do instead of a retry. */
  concluded(outcome: RunOutcome, ticket: Ticket | undefined): Instead | undefined
  /** Lets a stopped consumer go on. False when it was not stopped. */
  reset(): boolean
  /** One sentence for each thing that is wrong. */
  problems(): readonly string[]
  /** When the worker begins to receive; `onSlots` is told each change of their number. */
  start(onSlots: (slots: number) => void): void
  close(): Promise<void>
}

/** One run, between its start and what is concluded from it. */
export interface Ticket {
  readonly at: number
}

export type RunOutcome =
  | { readonly as: 'succeeded' }
  | ({ readonly as: 'failed' } & Pick<Classification, 'errorClass' | 'code'>)
  /** It was interrupted, or somebody else has the message. */
  | { readonly as: 'undecided' }

/** Given back without blame. */
export interface Instead {
  readonly delayMs: number
}

export interface QueueFlowOptions {
  readonly queue: string
  readonly concurrency: Concurrency
  readonly killSwitch: KillSwitchSettings | undefined
  readonly clock: Clock
  readonly logger: Logger
  readonly meter: Meter
  readonly store: Store | undefined
  readonly gauge: () => Promise<QueueSight>
}

/** So many handlers side by side, or as many as the queue needs within bounds. */
export type Concurrency = number | SlotSettings

export function queueFlow(options: QueueFlowOptions): QueueFlow {
  const { concurrency, killSwitch, meter, clock } = options
  const control =
    typeof concurrency === 'number' ? undefined : slotControl({ ...options, settings: concurrency })
  const kill = killSwitch && consumerSwitch({ ...options, settings: killSwitch })
  const wanted = (): number => control?.slots() ?? Number(concurrency)
  const slots = (): number => kill?.slots(wanted()) ?? wanted()
  return {
    slots,
    began: (history) => {
      meter.began()
      const last = history.records.at(-1)
      if (last?.errorClass === 'crashed') kill?.note({ as: 'failed', kind: 'crashed' }, last.at)
      return { at: clock.now() }
    },
    ended: (ticket) => meter.ended(clock.now() - ticket.at),
    concluded: (outcome) => {
      if (kill === undefined) return undefined
      if (outcome.as === 'succeeded') kill.note({ as: 'ok' }, clock.now())
      // Who is told to come later has not failed.
      if (outcome.as === 'failed' && outcome.errorClass !== 'throttled') {
        kill.note({ as: 'failed', kind: `${outcome.errorClass}: ${outcome.code}` }, clock.now())
      }
      return undefined
    },
    reset: () => kill?.reset() ?? false,
    problems: () => [kill?.problem() ?? []].flat(),
    start: (onSlots) => {
      control?.start(() => onSlots(slots()))
      kill?.start(() => onSlots(slots()))
    },
    close: () => {
      control?.close()
      kill?.close()
      return meter.flush()
    },
  }
}

/** The most handlers that may ever run side by side. */
export function mostSlots(concurrency: Concurrency): number {
  return typeof concurrency === 'number' ? concurrency : concurrency.max
}
