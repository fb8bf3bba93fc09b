import type { Delivery, Settlement } from '../../model/delivery.ts'
import type { Envelope } from '../../model/envelope.ts'
import type { Subscription, Transport } from '../../transport/transport.ts'
import { acked, released } from '../acts.ts'
import type { Scope } from '../scope.ts'

/**
 * Messages of several keys, sent in order; consumers on connections of their own that give back at random, leave and
 * vanish. Ends when each message was acked.
 */
export interface OrderedKeys {
  readonly keys: number
  readonly messagesPerKey: number
  readonly consumers: number
  /** How many times a consumer vanishes with messages in hand; as often one leaves. */
  readonly vanishes: number
  /** The longest that it may take, in ms. */
  readonly withinMs: number
}

export interface OrderVerdict {
  /** Handed out although an earlier one of its key was not yet acked by anybody. */
  readonly overtaken: readonly string[]
  /** Handed out while a living holder had another one of its key, or this very one. */
  readonly together: readonly string[]
  /** Never acked. */
  readonly lost: readonly string[]
}

interface Place {
  readonly key: string
  readonly place: number
}

/** What the consumers saw, judged as it happens: all of them live in this process, so there is one order of events. */
interface OrderHistory {
  handedOut(delivery: Delivery): void
  /** Its holder gives it back, or vanished with it. */
  letGo(delivery: Delivery): void
  /** Its holder lets it go by an ack; what became of that says `answered`. */
  acking(delivery: Delivery): void
  answered(delivery: Delivery, isOk: boolean): void
  readonly open: ReadonlySet<string>
  verdict(): OrderVerdict
}

function orderHistory(places: ReadonlyMap<string, Place>, now: () => number): OrderHistory {
  /** Not acked, and no ack on its way. */
  const waiting = new Set(places.keys())
  const open = new Set(places.keys())
  const held = new Map<string, Delivery>()
  const overtaken: string[] = []
  const together: string[] = []
  const isAhead = (one: Place, other: Place): boolean =>
    one.key === other.key && one.place < other.place
  const placeOf = ({ envelope }: Delivery): Place => {
    const place = places.get(envelope.id)
    if (place === undefined) throw new Error(`nobody sent ${envelope.id}`)
    return place
  }
  const isLive = ({ claim }: Delivery): boolean =>
    !claim.lost.aborted && (claim.expiresAt ?? Number.POSITIVE_INFINITY) > now()
  const letGo: OrderHistory['letGo'] = (delivery) => {
    const { key } = placeOf(delivery)
    if (held.get(key) === delivery) held.delete(key)
  }
  return {
    open,
    handedOut(delivery) {
      const mine = placeOf(delivery)
      const left = [...waiting].flatMap((id) => places.get(id) ?? [])
      if (left.some((other) => isAhead(other, mine))) overtaken.push(delivery.envelope.id)
      const before = held.get(mine.key)
      if (before !== undefined && isLive(before)) together.push(delivery.envelope.id)
      held.set(mine.key, delivery)
    },
    letGo,
    acking(delivery) {
      letGo(delivery)
      waiting.delete(delivery.envelope.id)
    },
    answered({ envelope }, isOk) {
      if (isOk) open.delete(envelope.id)
      else if (open.has(envelope.id)) waiting.add(envelope.id)
    },
    verdict: () => ({ overtaken, together, lost: [...open] }),
  }
}

interface Run {
  readonly scope: Scope
  readonly queue: string
  readonly history: OrderHistory
  readonly stop: AbortSignal
  vanishesLeft: number
  leavesLeft: number
}

export async function orderedKeys(scope: Scope, plan: OrderedKeys): Promise<OrderVerdict> {
  const queue = await scope.queue()
  const { places, envelopes } = inTurns(scope, plan)
  const history = orderHistory(places, scope.now)
  const stop = new AbortController()
  const { vanishes } = plan
  const run: Run = {
    scope,
    queue,
    history,
    stop: stop.signal,
    vanishesLeft: vanishes,
    leavesLeft: vanishes,
  }
  const workers = [produce(scope, queue, envelopes)]
  for (let at = 0; at < plan.consumers; at++) workers.push(consume(run))
  const all = Promise.all(workers)
  try {
    const done = async (): Promise<boolean> => {
      await Promise.race([all, undefined])
      return history.open.size === 0
    }
    await scope.until(`${places.size} messages acked`, done, plan.withinMs)
  } finally {
    stop.abort()
    await scope.settles('the workers', all)
  }
  return history.verdict()
}

/** The keys take turns, so that each batch holds some of all. */
function inTurns(
  scope: Scope,
  { keys, messagesPerKey }: OrderedKeys,
): {
  readonly places: ReadonlyMap<string, Place>
  readonly envelopes: readonly Envelope[]
} {
  const places = new Map<string, Place>()
  const envelopes: Envelope[] = []
  for (let place = 0; place < messagesPerKey; place++) {
    for (let at = 0; at < keys; at++) {
      const key = `key-${at}`
      const envelope = scope.message({ orderingKey: key })
      places.set(envelope.id, { key, place })
      envelopes.push(envelope)
    }
  }
  return { places, envelopes }
}

async function produce(scope: Scope, queue: string, envelopes: readonly Envelope[]): Promise<void> {
  for (let sent = 0; sent < envelopes.length; ) {
    const batch = envelopes.slice(sent, sent + 1 + Math.floor(scope.random() * 20))
    await scope.send(scope.near, queue, ...batch)
    sent += batch.length
  }
}

/** One connection after the other: the next comes when the last one has left or vanished. */
async function consume(run: Run): Promise<void> {
  const { scope } = run
  while (!run.stop.aborted) {
    const transport = await scope.connect()
    const subscription = await scope.subscribeShortly(transport, run.queue)
    await work(run, transport, subscription)
  }
}

const LEAVES = 0.04

async function work(run: Run, transport: Transport, from: Subscription): Promise<void> {
  const { scope, history } = run
  while (!run.stop.aborted) {
    const batch = await from.receive({ max: 12, waitMs: 50, signal: run.stop })
    for (const delivery of batch) history.handedOut(delivery)
    if (batch.length > 0 && run.vanishesLeft > 0 && scope.random() < LEAVES) {
      run.vanishesLeft -= 1
      for (const delivery of batch) history.letGo(delivery)
      return scope.vanish(transport)
    }
    await settleAll(run, from, batch)
    if (batch.length > 0 && run.leavesLeft > 0 && scope.random() < LEAVES) {
      run.leavesLeft -= 1
      return from.close()
    }
  }
}

/** What is settled leaves the hand before the call: by its answer the next one may be with somebody else. */
async function settleAll(
  { scope, history }: Run,
  from: Subscription,
  batch: readonly Delivery[],
): Promise<void> {
  const acts = batch.map((delivery) => choose(scope, delivery))
  for (const { as, delivery } of acts) {
    if (as === 'acked') history.acking(delivery)
    else history.letGo(delivery)
  }
  const outcomes = await from.settle(acts)
  for (const [at, { as, delivery }] of acts.entries()) {
    if (as === 'acked') history.answered(delivery, outcomes[at]?.ok === true)
  }
}

function choose(scope: Scope, delivery: Delivery): Settlement {
  const { release, keepsHistory } = scope.traits
  if (release === 'none' || scope.random() < 0.85) return acked(delivery)
  const delayMs = release === 'delayed' && scope.random() < 0.5 ? 60 : 0
  return released(delivery, { counted: keepsHistory && scope.random() < 0.5, delayMs })
}
