import type { Clock } from '../../src/model/clock.ts'
import { closedError } from '../../src/model/closed-error.ts'
import type { Claim, Delivery, Sent, Settled, Settlement } from '../../src/model/delivery.ts'
import { settled } from '../../src/model/delivery.ts'
import type { Envelope } from '../../src/model/envelope.ts'
import { freshHistory } from '../../src/model/history.ts'
import { type Bell, openBell } from '../../src/transport/bell.ts'
import { lost, refused, stored } from '../../src/transport/outcomes.ts'
import { ownFault, unknownQueueError } from '../../src/transport/own-errors.ts'
import { refusalOf } from '../../src/transport/refusal.ts'
import type { Traits } from '../../src/transport/traits.ts'
import type { Subscription, Transport } from '../../src/transport/transport.ts'

/** What a partitioned log does by itself: it keeps what is sent and, for each lane, one position with a note. */
export const logTraits: Traits = {
  settles: 'upTo',
  claim: { kind: 'assignment' },
  release: 'none',
  uncountedRelease: false,
  counts: 'none',
  keepsHistory: false,
  countsCrashes: false,
  order: 'perKey',
  delay: 'none',
  remembersIds: false,
  dedupe: 'none',
  deadLetters: 'none',
  priorities: 1,
  capacity: 'sampled',
  atomicBatch: false,
  clock: 'caller',
  durability: 'process',
  limits: { bodyBytes: 1_000_000, sendBatch: 1_000, receiveBatch: 1_000, settleBatch: 1_000 },
}

interface Stored {
  readonly envelope: Envelope
  readonly sentAt: number
}

interface Lane {
  readonly name: string
  readonly log: Stored[]
  position: number
  note: string
  held: Held | undefined
}

/** A lane in the hands of one member. */
interface Held {
  readonly member: object
  readonly claim: Claim
  readonly lose: () => void
  next: number
}

interface Queue {
  readonly lanes: readonly Lane[]
  readonly members: object[]
}

export interface MemoryLog {
  connect(): Transport
  /** The committed position and note of each lane. */
  committed(queue: string): readonly (readonly [number, string])[]
  /** So many commits fail from now on, with unknown outcome. */
  failCommits(count: number): void
}

/** What all connections of one log share. */
interface Cluster {
  readonly clock: Clock
  readonly lanesEach: number
  readonly bell: Bell<string>
  readonly queues: Map<string, Queue>
  /** How many commits fail from now on, with unknown outcome. */
  failing: number
}

/** A log in memory: one group per queue, lanes shared out anew whenever a member comes or goes. */
export function memoryLog(clock: Clock, lanesEach: number): MemoryLog {
  const bell = openBell<string>(clock)
  const cluster: Cluster = { clock, lanesEach, bell, queues: new Map(), failing: 0 }
  return {
    connect: () => connection(cluster),
    committed: (name) => queueOf(cluster, name).lanes.map(({ position, note }) => [position, note]),
    failCommits: (count) => {
      cluster.failing = count
    },
  }
}

function queueOf({ queues }: Cluster, name: string): Queue {
  const queue = queues.get(name)
  if (queue === undefined) throw unknownQueueError(name)
  return queue
}

function share({ bell }: Cluster, queue: Queue): void {
  for (const [at, lane] of queue.lanes.entries()) {
    const member = queue.members[at % Math.max(1, queue.members.length)]
    if (lane.held?.member === member) continue
    lane.held?.lose()
    lane.held = member && hold(lane, member)
  }
  bell.ring()
}

function connection(cluster: Cluster): Transport {
  const closes: (() => Promise<void>)[] = []
  let isClosed = false
  const checkOpen = (): void => {
    if (isClosed) throw closedError('memory log')
  }
  return {
    name: 'memory log',
    databaseId: undefined,
    traits: logTraits,
    topology: {
      ensure: async (specs) => {
        const { queues, lanesEach } = cluster
        for (const { name } of specs) if (!queues.has(name)) queues.set(name, newQueue(lanesEach))
      },
    },
    send: async (name, batch, { atomic, signal }) => {
      checkOpen()
      signal.throwIfAborted()
      return append(cluster, name, batch, atomic ?? false)
    },
    subscribe: async (name) => {
      checkOpen()
      const subscription = subscribe(cluster, name)
      closes.push(subscription.close)
      return subscription
    },
    diagnose: (error) =>
      ownFault(error) ?? { code: 'unknown', retryable: false, outcome: 'unknown', cause: error },
    browse: {
      gauge: async (name) => ({
        depth: queueOf(cluster, name).lanes.reduce(
          (sum, { log, position }) => sum + log.length - position,
          0,
        ),
        scheduled: undefined,
        inFlight: undefined,
        dead: undefined,
        ageMs: undefined,
        paused: false,
      }),
    },
    close: async () => {
      isClosed = true
      await Promise.all(closes.map((close) => close()))
    },
  }
}

function append(
  { bell, clock, ...cluster }: Cluster,
  name: string,
  batch: readonly Envelope[],
  atomic: boolean,
): readonly Sent[] {
  const { lanes } = queueOf({ bell, clock, ...cluster }, name)
  const outcomes = batch.map((envelope): Sent => {
    if (atomic || (envelope.remember ?? []).length > 0) return refused('invalid')
    const refusal = refusalOf(envelope, logTraits)
    if (refusal !== undefined) return refusal
    lanes[laneFor(envelope, lanes.length)]?.log.push({ envelope, sentAt: clock.now() })
    return stored(envelope.id)
  })
  bell.ring(name)
  return outcomes
}

function subscribe(cluster: Cluster, name: string): Subscription {
  const { bell, clock } = cluster
  const queue = queueOf(cluster, name)
  const member = {}
  const closed = new AbortController()
  const paused = new Set<string>()
  queue.members.push(member)
  share(cluster, queue)
  return {
    receive: async ({ max, waitMs, signal }) => {
      if (closed.signal.aborted) throw closedError('the subscription')
      const ends = AbortSignal.any([signal, closed.signal])
      const until = clock.now() + waitMs
      for (;;) {
        if (ends.aborted) return []
        const rings = bell.rings(name)
        const found = taken(queue, member, paused, max)
        const leftMs = until - clock.now()
        if (found.length > 0 || leftMs <= 0) return found
        await bell.wait(name, rings, leftMs, ends)
      }
    },
    settle: async (batch) => batch.map((one) => settleOne(cluster, queue, one)),
    pauseLane: (lane, isPaused) => {
      if (isPaused) paused.add(lane)
      else paused.delete(lane)
      bell.ring(name)
    },
    resize: () => {},
    close: async () => {
      if (closed.signal.aborted) return
      closed.abort()
      queue.members.splice(queue.members.indexOf(member), 1)
      share(cluster, queue)
    },
  }
}

function taken(
  queue: Queue,
  member: object,
  paused: ReadonlySet<string>,
  max: number,
): readonly Delivery[] {
  const all: Delivery[] = []
  for (const lane of queue.lanes) {
    const { held } = lane
    if (held?.member !== member || paused.has(lane.name)) continue
    while (all.length < max && held.next < lane.log.length) {
      all.push(deliveryOf(lane, held, held.next))
      held.next += 1
    }
  }
  return all
}

function settleOne(cluster: Cluster, queue: Queue, one: Settlement): Settled {
  if (one.as !== 'acked') return invalid
  const { receipt, claim, position = 0n } = one.delivery
  const lane = queue.lanes.find(({ name }) => name === one.delivery.lane)
  if (lane === undefined || claim.lost.aborted || !(receipt instanceof Set)) return lost
  if (receipt.has('acked')) return lost
  if (cluster.failing > 0) {
    cluster.failing -= 1
    return { ok: false, fault: { code: 'unavailable', retryable: true, outcome: 'unknown' } }
  }
  receipt.add('acked')
  const upTo = one.upTo ?? { position: position + 1n, note: '' }
  lane.position = one.upTo ? Number(upTo.position) : Math.max(lane.position, Number(upTo.position))
  lane.note = upTo.note
  return settled
}

const invalid: Settled = {
  ok: false,
  fault: { code: 'invalid', retryable: false, outcome: 'notApplied' },
}

function newQueue(lanes: number): Queue {
  return {
    members: [],
    lanes: Array.from({ length: lanes }, (_, at) => ({
      name: `${at}`,
      log: [],
      position: 0,
      note: '',
      held: undefined,
    })),
  }
}

function hold(lane: Lane, member: object): Held {
  const gone = new AbortController()
  const claim = {
    expiresAt: undefined,
    ending: gone.signal,
    lost: gone.signal,
    ...(lane.note === '' ? {} : { note: lane.note }),
  }
  return { member, claim, lose: () => gone.abort(), next: lane.position }
}

/** Keys of one character each go to a lane of their own, so that tests can choose it. */
function laneFor({ orderingKey = 'a' }: Envelope, lanes: number): number {
  return orderingKey.charCodeAt(0) % lanes
}

function deliveryOf(lane: Lane, held: Held, at: number): Delivery {
  const { envelope, sentAt } = lane.log[at] as Stored
  return {
    envelope,
    sentAt,
    deliveries: undefined,
    history: freshHistory,
    alone: false,
    fence: undefined,
    claim: held.claim,
    lane: lane.name,
    position: BigInt(at),
    receipt: new Set<string>(),
  }
}
