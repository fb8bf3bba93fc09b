import type { Delivery, Settlement } from '../../model/delivery.ts'
import type { Envelope } from '../../model/envelope.ts'
import type { Subscription, Transport } from '../../transport/transport.ts'
import { acked, released } from '../acts.ts'
import type { Scope } from '../scope.ts'
import { type History, newHistory } from './history.ts'

/**
 * What goes in comes out: producers and consumers on connections of their own, every call through
 * `weaken`, consumers that release at random and some that vanish. Ends when the queue is empty;
 * the history is judged by `verdict`.
 */
export interface TotalQueue {
  readonly messages: number
  readonly producers: number
  readonly consumers: number
  /** How many times a consumer vanishes with a batch in hand. */
  readonly vanishes: number
  /** Slipped between the kit and each connection. */
  readonly weaken: (transport: Transport) => Transport
  /** The longest that it may take, in ms. */
  readonly withinMs: number
}

const BATCH = 8
const VANISHES_AT_A_BATCH = 0.1

export async function totalQueue(scope: Scope, plan: TotalQueue): Promise<History> {
  const queue = await scope.queue()
  const history = newHistory()
  const stop = new AbortController()
  const envelopes = Array.from({ length: plan.messages }, () => scope.message())
  const share = Math.ceil(plan.messages / plan.producers)
  const workers: Promise<void>[] = []
  for (let at = 0; at < plan.producers; at++) {
    const mine = envelopes.slice(at * share, (at + 1) * share)
    const transport = plan.weaken(await scope.connect())
    workers.push(produce(scope, transport, queue, mine, history))
  }
  const run: Run = { scope, plan, queue, history, stop: stop.signal, vanishesLeft: plan.vanishes }
  for (let at = 0; at < plan.consumers; at++) workers.push(consume(run))
  const all = Promise.all(workers)
  try {
    await scope.until(
      `${plan.messages} messages sent and none left`,
      async () => {
        await Promise.race([all, undefined])
        return history.sent.size >= plan.messages && history.inDoubt.size === 0
          ? isEmpty(scope, queue)
          : false
      },
      plan.withinMs,
    )
  } finally {
    stop.abort()
    await scope.settles('the workers', all)
  }
  return history
}

async function isEmpty({ far }: Scope, queue: string): Promise<boolean> {
  if (!far.browse) return true
  const { depth, scheduled, inFlight } = await far.browse.gauge(queue)
  return (depth ?? 0) + (scheduled ?? 0) + (inFlight ?? 0) === 0
}

/** Sends until every message is confirmed; after a fault the same id is sent again. */
async function produce(
  scope: Scope,
  transport: Transport,
  queue: string,
  envelopes: readonly Envelope[],
  history: History,
): Promise<void> {
  let left = envelopes
  while (left.length > 0) {
    const batch = left.slice(0, 1 + Math.floor(scope.random() * BATCH))
    const outcomes = await transport
      .send(queue, batch, { signal: scope.never })
      .catch((error: unknown) => {
        const fault = transport.diagnose(error)
        return batch.map(() => ({ ok: false, fault }) as const)
      })
    const unsent = batch.filter(({ id }, at) => {
      const outcome = outcomes[at]
      if (!outcome) throw new Error('send answered fewer outcomes than it was given')
      if (outcome.ok) history.stored(id)
      else if (outcome.fault.outcome === 'unknown') history.sentInDoubt(id)
      return !outcome.ok
    })
    left = [...unsent, ...left.slice(batch.length)]
  }
}

interface Run {
  readonly scope: Scope
  readonly plan: TotalQueue
  readonly queue: string
  readonly history: History
  readonly stop: AbortSignal
  vanishesLeft: number
}

/**
 * One consumer after the other on connections of their own: the next comes when the last one has
 * vanished.
 */
async function consume(run: Run): Promise<void> {
  const { scope } = run
  while (!run.stop.aborted) {
    const connection = await scope.connect()
    const transport = run.plan.weaken(connection)
    let end: End = 'in doubt'
    while (end === 'in doubt') {
      const subscription = await scope.subscribeShortly(transport, run.queue)
      end = await work(run, transport, subscription)
      if (end === 'in doubt') await subscription.close()
    }
    if (end === 'vanishes') await scope.vanish(connection)
  }
}

/**
 * `in doubt`: a receive failed, and what it may have taken comes back with no lease: only when the subscription closes.
 */
type End = 'told' | 'vanishes' | 'in doubt'

/** Works until it is told to stop, or until chance has it vanish with a batch in hand. */
async function work(run: Run, transport: Transport, from: Subscription): Promise<End> {
  const { history, scope } = run
  while (!run.stop.aborted) {
    const batch = await from
      .receive({ max: BATCH, waitMs: 50, signal: run.stop })
      .catch((): undefined => undefined)
    if (batch === undefined && scope.traits.claim.kind !== 'lease') return 'in doubt'
    for (const delivery of batch ?? []) history.delivered(delivery.envelope.id)
    const isDrawn = batch !== undefined && batch.length > 0 && run.vanishesLeft > 0
    if (isDrawn && scope.random() < VANISHES_AT_A_BATCH) {
      run.vanishesLeft -= 1
      return 'vanishes'
    }
    const choices = (batch ?? []).map((delivery) => choose(scope, delivery))
    if (run.plan.vanishes > 0) noteDelayedCopies(transport, choices, history)
    await settleAll(transport, from, choices, history)
  }
  return 'told'
}

function choose(scope: Scope, delivery: Delivery): Settlement {
  const draw = scope.random()
  if (draw < 0.7 || scope.traits.release === 'none') return acked(delivery)
  const delayed = scope.traits.release === 'delayed' && draw > 0.9
  const { keepsHistory, uncountedRelease } = scope.traits
  const counted = keepsHistory && (draw > 0.8 || !uncountedRelease)
  return released(delivery, { counted, delayMs: delayed ? 40 : 0 })
}

/**
 * A copy that waits in a store is sent by whoever takes it out when it is due. One that vanishes between that send and its removal
 * doubles it, long after the release was answered.
 */
function noteDelayedCopies(
  { traits }: Transport,
  batch: readonly Settlement[],
  history: History,
): void {
  if (!traits.releaseMayDouble) return
  for (const one of batch) {
    if (one.as === 'released' && one.delayMs > 0) history.doubled(one.delivery.envelope.id)
  }
}

/**
 * Settles until each was answered. What is lost is somebody else's; what is in doubt is asked
 * again.
 */
async function settleAll(
  transport: Transport,
  subscription: Subscription,
  batch: readonly Settlement[],
  history: History,
): Promise<void> {
  let left = batch
  while (left.length > 0) {
    const outcomes = await subscription.settle(left).catch((error: unknown) => {
      const fault = transport.diagnose(error)
      return left.map(() => ({ ok: false, fault }) as const)
    })
    left = left.filter((settlement, at) => {
      const outcome = outcomes[at]
      if (!outcome) throw new Error('settle answered fewer outcomes than it was given')
      const { id } = settlement.delivery.envelope
      if (outcome.ok) {
        if (settlement.as === 'acked') history.acked(id)
        return false
      }
      if (outcome.fault.outcome === 'unknown' && settlement.as === 'acked') history.maybeAcked(id)
      if (settlement.as === 'released' && transport.traits.releaseMayDouble) history.doubled(id)
      return outcome.fault.retryable
    })
  }
}
