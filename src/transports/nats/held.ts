import type { Clock } from '../../model/clock.ts'
import type { Delivery } from '../../model/delivery.ts'
import { afterCrash } from '../../model/history.ts'
import { isId } from '../../model/ids.ts'
import { LazyClaim } from '../../transport/lazy-claim.ts'
import type { Attempts } from '../../transport/settling.ts'
import type { LastWritten } from './attempts.ts'
import type { Source } from './lane.ts'
import type { Received } from './wire.ts'

/** A message in our hands. */
export interface Held extends Attempts {
  readonly delivery: Delivery
  readonly claim: LazyClaim
  /** Where the server listens for what becomes of it. */
  readonly reply: string
  readonly id: string
  /** Which consumer of the queue handed it out. */
  readonly source: Source
  readonly seq: number
  /** How often it was handed out, this time included. */
  readonly deliveries: number
  /** Where its attempts are written down, which must go with it; 0 while they are not. */
  writtenAt: number
  /** Before this moment of our clock the server gives it to nobody else. */
  safeUntil: number
  /** When the server is asked to keep it for longer. */
  renewAt: number
  /** Until then somebody wants it kept. */
  leaseUntil: number
  /** Somebody is just settling it. */
  leaving: boolean
}

/** What the server tells with a message, in the subject that its ack goes to. */
export interface Handing {
  readonly seq: number
  readonly deliveries: number
  readonly consumerSeq: bigint
  /** Epoch ms, when the message was stored. */
  readonly storedAt: number
}

/** `$JS.ACK.<stream>.<consumer>.<deliveries>.<seq>.<consumer seq>.<ns>.<waiting>`, or with domain and account before it. */
export function handingOf(reply: string | undefined): Handing | undefined {
  const parts = reply?.split('.') ?? []
  if (parts[0] !== '$JS' || parts[1] !== 'ACK') return undefined
  const [deliveries, seq, consumerSeq, nanoseconds] = parts.slice(parts.length >= 11 ? 6 : 4)
  if (!deliveries || !seq || !consumerSeq || !nanoseconds) return undefined
  return {
    deliveries: Number(deliveries),
    seq: Number(seq),
    consumerSeq: BigInt(consumerSeq),
    storedAt: Number(BigInt(nanoseconds) / 1_000_000n),
  }
}

export interface Arrival {
  readonly source: Source
  readonly body: Uint8Array
  readonly wire: Received
  readonly reply: string
  readonly handing: Handing
  readonly last: LastWritten
  readonly id: string
  /** When the pull that brought it was sent; the server cannot have handed it out before. */
  readonly askedAt: number
  readonly clock: Pick<Clock, 'now'>
  readonly ackWaitMs: number
  readonly leaseMs: number
}

export function handOut(arrival: Arrival): Held {
  const { body, wire, id, reply, handing, clock, source } = arrival
  const now = clock.now()
  const claim = new LazyClaim(now + arrival.leaseMs, () => clock.now() >= held.safeUntil)
  const attempts = attemptsOf(arrival, wire.history, now)
  const held: Held = {
    ...attempts,
    claim,
    reply,
    id,
    source,
    seq: handing.seq,
    deliveries: handing.deliveries,
    writtenAt: arrival.last.at,
    safeUntil: arrival.askedAt + arrival.ackWaitMs,
    renewAt: now,
    leaseUntil: now + arrival.leaseMs,
    leaving: false,
    delivery: {
      envelope: {
        id,
        body,
        headers: wire.headers,
        priority: 0,
        ...(wire.idempotencyKey === undefined ? {} : { idempotencyKey: wire.idempotencyKey }),
        ...(wire.orderingKey === undefined ? {} : { orderingKey: wire.orderingKey }),
      },
      sentAt: wire.sentAt ?? handing.storedAt,
      deliveries: handing.deliveries,
      ...attempts,
      fence: handing.consumerSeq,
      claim,
      lane: source.lane === undefined ? undefined : String(source.lane),
      position: undefined,
      get receipt() {
        return held
      },
    },
  }
  return held
}

/**
 * A foreign producer's message without an id, or with one that is none for us, is known by its place. Sequences begin again
 * when a stream is made again, so the moment of its making (epoch ms) is a part of the identity.
 */
export function identityOf({ id }: Received, { seq }: Handing, streamMadeAt: number): string {
  return id !== undefined && isId(id) ? id : `${streamMadeAt}-${seq}`
}

/**
 * Each handing out that ended with a release is written down, with its number. One that is missing ended with its holder,
 * or never reached anybody, which looks the same from here.
 */
function attemptsOf(
  { last: { written }, handing }: Arrival,
  sent: Attempts['history'],
  now: number,
): Attempts {
  const unexplained = Math.max(0, handing.deliveries - 1 - (written?.deliveries ?? 0))
  let history = written?.history ?? sent
  for (let crash = 0; crash < Math.min(unexplained, CRASHES_MAX); crash++) {
    history = afterCrash(history, now)
  }
  return { history, alone: unexplained > 0 || (written?.alone ?? false) }
}

const CRASHES_MAX = 100
