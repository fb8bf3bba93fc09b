import { closedError } from '../../model/closed-error.ts'
import type { Delivery } from '../../model/delivery.ts'
import { redisFault } from '../../redis/fault.ts'
import type { Reply } from '../../redis/wire.ts'
import { type Ends, untilEnded } from '../../transport/ends.ts'
import { RECEIVE_MAX } from '../../transport/keeps-all.ts'
import type { ReceiveOptions, Subscription } from '../../transport/transport.ts'
import { type Hand, openHand } from './hand.ts'
import { handOut } from './held.ts'
import type { QueueKeys } from './keys.ts'
import { type Mending, openMending } from './mend.ts'
import { type ReadEntry, readEntries } from './read-entries.ts'
import { reclaim } from './reclaim.ts'
import { scripts } from './script.ts'
import { giveBack, renewBatch, settleBatch } from './settle.ts'
import { pollEveryMs, run, type Store } from './store.ts'
import { claimAt, claimsOf } from './streams.ts'
import { noGroupError } from './topology.ts'

export interface SubscriptionParts {
  readonly store: Store
  readonly name: string
  readonly queue: QueueKeys
  readonly leaseMs: number
  readonly onClose: () => void
}

/** How long a closing subscription waits for its release; after that its leases simply run out. */
const CLOSE_TIMEOUT_MS = 2_000

/** Pulled, so `max` of `receive` alone bounds what is in flight; `maxInFlight` is for backends that push. */
export function redisSubscription(parts: SubscriptionParts): Subscription {
  const { store, name, queue } = parts
  const hand = openHand()
  const doubtful = new Set<string>()
  const closing = new AbortController()
  const mending = openMending(store, name, queue)

  return {
    async receive(options) {
      if (closing.signal.aborted) throw closedError('the subscription')
      const signals = [options.signal, closing.signal, store.closing]
      return await untilEnded(signals, (ends) =>
        receiving({ ...parts, hand, doubtful, mending, ends }, options),
      )
    },
    async settle(batch) {
      if (batch.length === 0) return []
      const outcomes = await settleBatch(store, queue, hand, batch)
      // The next one of a key may follow.
      if (batch.some(({ as, delivery }) => as === 'released' || isInLine(delivery))) {
        store.bell.ring(name)
      }
      return outcomes
    },
    renew: async (batch, leaseMs) =>
      batch.length === 0 ? [] : await renewBatch(store, queue, hand, batch, leaseMs),
    resize() {},
    async close() {
      if (closing.signal.aborted) return
      closing.abort()
      parts.onClose()
      await letGo(parts, hand, doubtful)
    },
  }
}

function isInLine({ envelope }: Delivery): boolean {
  return envelope.orderingKey !== undefined
}

interface Receiving extends SubscriptionParts {
  readonly hand: Hand
  /** Claims whose answer never arrived: what they took would wait for its lease, and then count as a crash. */
  readonly doubtful: Set<string>
  readonly mending: Mending
  readonly ends: Ends
}

async function receiving(parts: Receiving, options: ReceiveOptions): Promise<readonly Delivery[]> {
  const { store, name, ends } = parts
  const { clock, bell } = store
  const endAt = clock.now() + options.waitMs
  while (!ends.reached()) {
    const since = bell.rings(name)
    const leftMs = endAt - clock.now()
    const max = Math.min(RECEIVE_MAX, Math.max(1, options.max))
    const claimed = await claiming(parts, max, leftMs > 0)
    if (claimed.deliveries.length > 0) return claimed.deliveries
    if (leftMs <= 0 || ends.reached()) break
    const ms = Math.min(leftMs, claimed.nextMs, pollEveryMs(store))
    await bell.wait(name, since, Math.max(1, ms), ends.signal())
  }
  return []
}

interface Claimed {
  readonly deliveries: readonly Delivery[]
  /** Ms until something falls due. */
  readonly nextMs: number
}

async function claiming(parts: Receiving, max: number, waits: boolean): Promise<Claimed> {
  const { store, queue, leaseMs, hand, ends, doubtful, mending } = parts
  await letGoOfDoubtful(store, queue, doubtful)
  for (;;) {
    const claim = store.newClaim()
    const expiresAt = store.clock.now() + leaseMs
    const lease = String(Math.ceil(leaseMs))
    const makesGroup = store.topology === 'create' ? '1' : '0'
    const args = [queue.group, claim, String(max), lease, waits ? '1' : '0', makesGroup]
    const reply = await asking(parts, claim, args)
    const [kind, second, gone, behind] = Array.isArray(reply) ? reply : [0]
    if (kind === 1) {
      // Of which key they were is not known any more.
      if ((await reclaim(store, queue)) > 0) mending.hurry()
      continue
    }
    if (kind === -1) {
      store.queues.delete(parts.name)
      return { deliveries: [], nextMs: Number.POSITIVE_INFINITY }
    }
    if (kind === -2) throw noGroupError(parts.name, queue)
    if (kind === 0 || !Array.isArray(reply)) {
      await mending.look(Number(gone), Number(behind))
      const nextMs = Number(second)
      return { deliveries: [], nextMs: nextMs < 0 ? Number.POSITIVE_INFINITY : nextMs }
    }
    const handing = { fence: BigInt(String(second)), alone: kind === 3, expiresAt }
    const all = (await reading(parts, claim, reply)).map(({ entry, mark }) =>
      handOut(entry, { ...handing, claim: claimAt(claim, mark) }),
    )
    if (ends.reached()) {
      // Nobody waits for the answer any more; what arrived late goes back at once.
      await giveBack(store, queue, all, { timeoutMs: CLOSE_TIMEOUT_MS })
      return { deliveries: [], nextMs: 0 }
    }
    hand.take(all)
    return { deliveries: all.map((held) => held.delivery), nextMs: 0 }
  }
}

async function reading(
  { store, queue, doubtful }: Receiving,
  claim: string,
  reply: readonly Reply[],
): Promise<readonly ReadEntry[]> {
  try {
    return await readEntries(store, queue, reply)
  } catch (error) {
    for (const one of claimsOf(claim)) doubtful.add(one)
    throw error
  }
}

async function asking(
  { store, queue, doubtful }: Receiving,
  claim: string,
  args: readonly string[],
): Promise<Reply> {
  try {
    return await run(store, scripts.CLAIM, queue, args, { bytes: true })
  } catch (error) {
    if (redisFault(error).outcome === 'unknown') {
      for (const one of claimsOf(claim)) doubtful.add(one)
    }
    throw error
  }
}

async function letGoOfDoubtful(
  store: Store,
  queue: QueueKeys,
  doubtful: Set<string>,
): Promise<void> {
  if (doubtful.size === 0) return
  const claims = [...doubtful]
  await run(store, scripts.LET_GO, queue, [queue.group, ...claims])
  for (const claim of claims) doubtful.delete(claim)
}

async function letGo(
  { store, name, queue }: SubscriptionParts,
  hand: Hand,
  doubtful: ReadonlySet<string>,
): Promise<void> {
  const all = hand.empty()
  for (const held of all) held.lose()
  const claims = new Set([...all.map((held) => held.claim), ...doubtful])
  if (claims.size === 0) return
  try {
    await run(store, scripts.LET_GO, queue, [queue.group, ...claims], {
      timeoutMs: CLOSE_TIMEOUT_MS,
    })
    store.bell.ring(name)
  } catch (error) {
    store.logger.warn(
      'messages in hand could not be released; they come back when their leases end',
      { messages: all.length, error },
    )
  }
}
