import { type Clock, systemClock } from '../model/clock.ts'
import type { Delivery, Settled, Settlement } from '../model/delivery.ts'
import type { Envelope } from '../model/envelope.ts'
import type { Traits } from '../transport/traits.ts'
import type { SubscribeOptions, Subscription, Transport } from '../transport/transport.ts'
import type { FreshQueueOptions, Harness, UserTransaction } from './harness.ts'
import { type Timing, timing } from './timing.ts'

/** What one test of the kit works with. Everything that it opens is closed when the test ends. */
export interface Scope extends Timing {
  readonly harness: Harness
  readonly traits: Traits
  readonly depth: Depth
  /** The first connection. */
  readonly near: Transport
  /** The second connection: what `near` did is asserted here. */
  readonly far: Transport
  connect(): Promise<Transport>
  queue(options?: FreshQueueOptions): Promise<string>
  /** An envelope with an id of its own; the body names it. */
  message(fields?: Partial<Envelope>): Envelope
  /** Sends and insists that each item was stored. */
  send(transport: Transport, queue: string, ...batch: readonly Envelope[]): Promise<void>
  /** With a lease of a minute, so that a slow machine loses none by accident. */
  subscribe(
    transport: Transport,
    queue: string,
    options?: Partial<SubscribeOptions>,
  ): Promise<Subscription>
  /**
   * A consumer for what others gave back. Where a lane has one reader (claims by assignment), the test's consumers of the
   * queue leave it first.
   */
  successor(transport: Transport, queue: string): Promise<Subscription>
  /** A subscription with the smallest lease, for tests that let it run out. */
  subscribeShortly(transport: Transport, queue: string): Promise<Subscription>
  /** Asks once, `waitMs: 0`. */
  receive(subscription: Subscription, max?: number): Promise<readonly Delivery[]>
  /** Asks until `count` deliveries came or the deadline passed (then it fails). */
  take(subscription: Subscription, count: number): Promise<readonly Delivery[]>
  one(subscription: Subscription): Promise<Delivery>
  settle(subscription: Subscription, ...batch: readonly Settlement[]): Promise<readonly Settled[]>
  /** Opens a transaction of the user; rolled back at the end when the test left it open. */
  begin(): Promise<UserTransaction>
  /** 0 <= n < 1, from a seed that is printed when the test fails. */
  readonly random: () => number
  readonly never: AbortSignal
  /** The kit's idea of the time, in epoch ms; a server's clock may differ. */
  now(): number
  /** The holder behind this connection is gone, as if its process had been killed. */
  vanish(transport: Transport): Promise<void>
}

export type Depth = 'quick' | 'full'

export interface ScopeOptions {
  readonly harness: Harness
  readonly depth: Depth
  readonly random: () => number
}

const LONG_LEASE_MS = 60_000
const real: Clock = systemClock()
let made = 0

/** Runs `body` with a scope and closes what was opened, whatever happens. */
export async function withScope(
  options: ScopeOptions,
  body: (scope: Scope) => Promise<void>,
): Promise<void> {
  const closers: (() => Promise<void>)[] = []
  try {
    await body(await openScope(options, closers))
  } finally {
    for (const close of closers.reverse()) await close()
  }
}

async function openScope(options: ScopeOptions, closers: (() => Promise<void>)[]): Promise<Scope> {
  const { harness, random } = options
  const connect = async (): Promise<Transport> => {
    const transport = await harness.connect()
    closers.push(() => transport.close())
    return transport
  }
  const near = await connect()
  const far = await connect()
  const time = timing(harness)
  const opened = new Map<string, readonly Subscription[]>()
  const subscribe: Scope['subscribe'] = async (transport, queue, subscribeOptions) => {
    const subscription = await transport.subscribe(queue, {
      group: 'conformance',
      leaseMs: LONG_LEASE_MS,
      maxInFlight: 1_000,
      ...subscribeOptions,
    })
    closers.push(() => subscription.close())
    opened.set(queue, [...(opened.get(queue) ?? []), subscription])
    return subscription
  }
  const successor: Scope['successor'] = async (transport, queue) => {
    if (near.traits.claim.kind === 'assignment') {
      for (const before of opened.get(queue) ?? []) await before.close()
    }
    return subscribe(transport, queue)
  }
  return {
    ...options,
    ...time,
    ...receiving(harness, time),
    traits: near.traits,
    near,
    far,
    connect,
    now: () => (harness.time ?? real).now(),
    vanish: async (transport) => harness.vanish?.(transport),
    never: new AbortController().signal,
    queue: (queueOptions) => harness.freshQueue(queueOptions),
    message: (fields) => envelope(random, fields),
    send: sendAll,
    begin: () => begin(harness, closers),
    subscribe,
    successor,
    subscribeShortly: (transport, queue) =>
      subscribe(transport, queue, { leaseMs: harness.leaseMs }),
  }
}

type Receiving = Pick<Scope, 'receive' | 'take' | 'one' | 'settle'>

function receiving(harness: Harness, time: Timing): Receiving {
  const receive: Scope['receive'] = (subscription, max = 100) =>
    time.settles(
      'receive with waitMs 0 answers',
      subscription.receive({ max, waitMs: 0, signal: new AbortController().signal }),
    )
  const take: Scope['take'] = async (subscription, count) => {
    const all: Delivery[] = []
    await time.until(`${count} deliveries on ${harness.name}`, async () => {
      all.push(...(await receive(subscription, count - all.length)))
      return all.length >= count
    })
    return all
  }
  return {
    receive,
    take,
    async one(subscription) {
      const [delivery] = await take(subscription, 1)
      if (!delivery) throw new Error('expected one delivery, got none')
      return delivery
    },
    settle: (subscription, ...batch) => time.settles('settle answers', subscription.settle(batch)),
  }
}

async function sendAll(
  transport: Transport,
  queue: string,
  ...batch: readonly Envelope[]
): Promise<void> {
  const sent = await transport.send(queue, batch, { signal: new AbortController().signal })
  for (const [index, outcome] of sent.entries()) {
    if (outcome.ok) continue
    const { code, cause } = outcome.fault
    throw new Error(`expected message ${batch[index]?.id} to be stored, got fault ${code}`, {
      cause,
    })
  }
}

async function begin(harness: Harness, closers: (() => Promise<void>)[]): Promise<UserTransaction> {
  if (!harness.transaction) {
    throw new Error('the transport has `transaction`, so the harness must have it too')
  }
  const opened = await harness.transaction()
  let open = true
  const end = async (how: () => Promise<void>): Promise<void> => {
    if (!open) return
    open = false
    await how()
  }
  closers.push(() => end(() => opened.rollback()))
  return {
    tx: opened.tx,
    commit: () => end(() => opened.commit()),
    rollback: () => end(() => opened.rollback()),
  }
}

function envelope(random: () => number, fields: Partial<Envelope> = {}): Envelope {
  made += 1
  const id = `m-${made.toString(36)}-${Math.floor(random() * 2 ** 40).toString(36)}`
  return {
    id,
    body: new TextEncoder().encode(`{"n":"${id}"}`),
    headers: {},
    priority: 0,
    ...fields,
  }
}
