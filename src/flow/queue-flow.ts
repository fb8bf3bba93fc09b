import type { Classification } from '../model/classify.ts'
import type { Clock } from '../model/clock.ts'
import type { AttemptHistory } from '../model/history.ts'
import type { Logger } from '../model/logger.ts'
import { chain, type MaybePromise } from '../model/maybe-promise.ts'
import type { Store } from '../store/store.ts'
import type { SlotSettings } from './adapt-slots.ts'
import type { BreakerPass, Breakers } from './breakers.ts'
import type { ConcurrencyLimiter, RunSlot } from './concurrency-limiter.ts'
import { type ConsumerSwitch, consumerSwitch } from './consumer-switch.ts'
import { failureJudge, type IsFailure } from './failure-judge.ts'
import type { KillSwitchSettings } from './kill-switch.ts'
import type { Meter } from './meter.ts'
import { nameGiver } from './name-giver.ts'
import type { RateLimiter } from './rate-limiter.ts'
import { type QueueSight, slotControl } from './slot-control.ts'

/** What the worker of one queue asks before it takes more, and tells of its runs. */
export interface QueueFlow {
  /** How many handlers may run side by side now; 0 while the consumer is stopped. */
  slots(): number
  /** How many messages may be received at once: few while they would only wait for a slot of the fleet. */
  appetite(): number
  /** Before a batch is admitted; undefined when nothing has to be asked first. */
  ready(): Promise<void> | undefined
  /**
   * Whether the handler may start now; else how long its message waits, given back without blame.
   * @param suspect the id of one that was in the hands of a worker that died: it must not wait in hand
   * @throws PermanentError, at once or later: one of the queue's functions names no downstream or no key for this payload.
   */
  admit(payload: unknown, suspect?: string): MaybePromise<Admitted | Later>
  /** It was admitted, and does not run after all. */
  unused(admitted: Admitted): void
  /** Right before a handler starts; `history` is that of its message. */
  began(history: AttemptHistory, admitted: Admitted): Ticket
  /** Once its outcome is decided and its slot is free. */
  ended(ticket: Ticket): void
  /** What the outcome was. A failure may be one that is not the message's: then what to do instead of a retry. */
  concluded(outcome: RunOutcome, ticket: Ticket | undefined): Instead | undefined
  /** Lets a stopped consumer go on. False when it was not stopped. */
  reset(): boolean
  /** One sentence for each thing that is wrong. */
  problems(): readonly string[]
  /** Nothing more is to run: what waits to be admitted goes back. */
  stop(): void
  /** When the worker begins to receive; `onSlots` is told each change of their number. */
  start(onSlots: (slots: number) => void): void
  /** After `stop`, when nothing runs: until the store has what it is to have. The caller bounds it. */
  settled(): Promise<void>
  close(): Promise<void>
}

/** One run, between its start and what is concluded from it. */
export interface Ticket {
  readonly at: number
  readonly pass: BreakerPass | undefined
  readonly slot: RunSlot | undefined
}

export interface Admitted {
  readonly as: 'now'
  /** Undefined without a breaker. */
  readonly pass: BreakerPass | undefined
  /** Undefined without a `concurrencyLimit`. */
  readonly slot: RunSlot | undefined
}

export interface Later {
  readonly as: 'later'
  readonly delayMs: number
}

export type RunOutcome =
  | { readonly as: 'succeeded' }
  | ({ readonly as: 'failed' } & Pick<Classification, 'errorClass' | 'code' | 'delayMs'>)
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
  readonly breakers: Breakers | undefined
  readonly limiter: RateLimiter | undefined
  readonly limits: ConcurrencyLimiter | undefined
  readonly definition: FlowQueue
  /** Brings resets of other processes to the kill switch. */
  readonly store: Pick<Store, 'states'> | undefined
  readonly gauge: () => Promise<QueueSight>
}

/** What a queue's definition says of its flow. */
export interface FlowQueue {
  readonly name: string
  downstream?(payload: unknown): string
  readonly breaker: { readonly isFailure: IsFailure } | undefined
}

/** So many handlers side by side, or as many as the queue needs within bounds. */
export type Concurrency = number | SlotSettings

export function queueFlow(options: QueueFlowOptions): QueueFlow {
  const { concurrency, killSwitch, meter, clock, limits } = options
  const control =
    typeof concurrency === 'number' ? undefined : slotControl({ ...options, settings: concurrency })
  const kill = killSwitch && consumerSwitch({ ...options, settings: killSwitch })
  // More than the whole fleet may run is more than can be of use here.
  const most = limits?.max ?? Number.POSITIVE_INFINITY
  const wanted = (): number => Math.min(most, control?.slots() ?? Number(concurrency))
  const slots = (): number => kill?.slots(wanted()) ?? wanted()
  const admit = admission(options)
  const { breaker } = options.definition
  const seen = seenBy(breaker && failureJudge({ ...options, isFailure: breaker.isFailure }))
  return {
    slots,
    appetite: () => limits?.appetite() ?? Number.POSITIVE_INFINITY,
    ready: () => options.breakers?.ready(),
    admit,
    unused: ({ pass, slot }) => {
      slot?.release()
      if (pass !== undefined) options.breakers?.concluded(pass, 'undecided')
    },
    began: (history, { pass, slot }) => {
      const at = clock.now()
      meter.began(at)
      const last = history.records.at(-1)
      if (last?.errorClass === 'crashed') kill?.died(last.at, at)
      return { at, pass, slot }
    },
    ended: ({ at, slot }) => {
      const now = clock.now()
      slot?.release(now - at)
      meter.ended(now - at, now)
    },
    concluded: (outcome, ticket) => {
      const pass = ticket?.pass
      if (pass !== undefined && outcome.as === 'failed' && outcome.errorClass === 'throttled') {
        options.breakers?.throttled(pass, outcome.delayMs)
      }
      const instead = pass && options.breakers?.concluded(pass, seen(outcome))
      // What the breaker takes upon itself is not the handler's fault.
      if (kill !== undefined && instead === undefined) noteOf(kill, outcome, clock.now())
      return instead
    },
    reset: () => kill?.reset() ?? false,
    problems: () => [kill?.problem() ?? [], limits?.problem() ?? []].flat(),
    stop: () => limits?.stop(),
    start: (onSlots) => {
      control?.start(() => onSlots(slots()))
      kill?.start(() => onSlots(slots()))
    },
    settled: async () => {
      await Promise.all([limits?.settled(), meter.flush()])
    },
    close: async () => {
      control?.close()
      kill?.close()
      options.breakers?.close()
      await Promise.all([limits?.close(), meter.flush()])
    },
  }
}

const NOW: Admitted = { as: 'now', pass: undefined, slot: undefined }

/** A slot may have to be waited for, so it is asked for first: what a breaker or a rate said before would not be true any more. */
function admission(options: QueueFlowOptions): QueueFlow['admit'] {
  const { limits } = options
  const otherwise = admissionBeside(options)
  if (limits === undefined) return otherwise
  return async (payload, suspect) => {
    const found = await limits.ask(payload, suspect)
    if ('delayMs' in found) return { as: 'later', ...found }
    let admitted: Admitted | Later | undefined
    try {
      admitted = await otherwise(payload)
      return admitted.as === 'now' ? { ...admitted, slot: found } : admitted
    } finally {
      if (admitted?.as !== 'now') found.release()
    }
  }
}

/** What breakers, gates and rates say. */
function admissionBeside(options: QueueFlowOptions): QueueFlow['admit'] {
  const { breakers, limiter } = options
  if (breakers === undefined && limiter === undefined) return () => NOW
  const byBreaker = breakers === undefined ? () => NOW : admittedBy(breakers, options)
  if (limiter === undefined) return byBreaker
  const unused = (pass: BreakerPass | undefined): void => {
    if (pass !== undefined) breakers?.concluded(pass, 'undecided')
  }
  // What waits for its downstream takes no token.
  return (payload) =>
    chain(byBreaker(payload), async (admitted) => {
      if (admitted.as === 'later') return admitted
      const asked = limiter.ask(payload)
      const delayMs = await asked.catch((error: unknown) => {
        unused(admitted.pass)
        throw error
      })
      if (delayMs === undefined) return admitted
      unused(admitted.pass)
      return { as: 'later', delayMs }
    })
}

function admittedBy(breakers: Breakers, { definition }: QueueFlowOptions): QueueFlow['admit'] {
  const { name: queue } = definition
  const nameOf = nameGiver({ queue, what: 'downstream' }, (payload) =>
    definition.downstream ? definition.downstream(payload) : '',
  )
  return (payload) =>
    chain(breakers.admit(nameOf(payload)), (found): Admitted | Later =>
      'delayMs' in found ? { as: 'later', ...found } : { ...NOW, pass: found },
    )
}

/** What the downstream has to do with it. One that says "later" is well. */
function seenBy(
  isFailure: IsFailure | undefined,
): (outcome: RunOutcome) => 'ok' | 'failed' | 'undecided' {
  return (outcome) => {
    if (outcome.as === 'succeeded') return 'ok'
    if (outcome.as === 'undecided') return 'undecided'
    const { errorClass, code } = outcome
    if (isFailure?.({ errorClass, code }) === true) return 'failed'
    return errorClass === 'throttled' ? 'ok' : 'undecided'
  }
}

function noteOf(kill: ConsumerSwitch, outcome: RunOutcome, now: number): void {
  if (outcome.as === 'succeeded') kill.note({ as: 'ok' }, now)
  // Who is told to come later has not failed.
  if (outcome.as === 'failed' && outcome.errorClass !== 'throttled') {
    kill.note({ as: 'failed', kind: `${outcome.errorClass}: ${outcome.code}` }, now)
  }
}

/** The most handlers that may ever run side by side. */
export function mostSlots(concurrency: Concurrency): number {
  return typeof concurrency === 'number' ? concurrency : concurrency.max
}
