import type { Msg } from '@nats-io/transport-node'
import { NOTHING_WRITTEN, readAttempts } from './attempts.ts'
import type { Hand } from './hand.ts'
import { type Held, handingOf, handOut, identityOf } from './held.ts'
import { laneOf, type Source } from './lane.ts'
import type { QueueNames } from './names.ts'
import { release } from './settle.ts'
import type { Store } from './store.ts'
import { makeConsumer, orMissing } from './topology.ts'
import { readWire } from './wire.ts'

/** What makes messages of the server's ours. */
export interface Arriving {
  readonly store: Store
  readonly names: QueueNames
  /** The consumers of the queue, that of messages without a key first. */
  readonly sources: readonly [Source, ...Source[]]
  readonly hand: Hand
  readonly leaseMs: number
  /** The shortest of its consumers, as they are on the server. */
  readonly ackWaitMs: number
  readonly streamMadeAt: number
  /** A message with a key came from elsewhere than its lane. */
  readonly onAstray: (orderingKey: string) => void
}

/** A request for messages is made anew this often: one that got lost costs no more. */
export const WAIT_MAX_MS = 10_000
/** Between two requests that the server did not serve. */
export const RETRY_MS = 100

/** A message as it came, with what is written beside it. `askedAt`: when it was asked for, before the server can have given it. */
export async function arrived(
  parts: Arriving,
  source: Source,
  msg: Msg,
  askedAt: number,
): Promise<Held> {
  const { store, names, ackWaitMs, leaseMs, streamMadeAt } = parts
  const handing = handingOf(msg.reply)
  if (handing === undefined || msg.reply === undefined) {
    throw new Error(`a message of stream ${names.stream} came without the place for its ack`)
  }
  const wire = readWire(msg.headers)
  if (wire.orderingKey !== undefined && isAstray(parts, source, wire.orderingKey)) {
    parts.onAstray(wire.orderingKey)
  }
  const id = identityOf(wire, handing, streamMadeAt)
  const again = handing.deliveries > 1
  const last = again ? await readAttempts(store, names, { id, seq: handing.seq }) : NOTHING_WRITTEN
  const { clock } = store
  const { reply, data: body } = msg
  return handOut({
    source,
    body,
    wire,
    id,
    reply,
    handing,
    last,
    askedAt,
    clock,
    ackWaitMs,
    leaseMs,
  })
}

function isAstray({ sources }: Arriving, { lane }: Source, orderingKey: string): boolean {
  const lanes = sources.length - 1
  return lanes > 0 && laneOf(orderingKey, lanes) !== lane
}

/** As if it had never been handed out. */
export async function giveBack(
  { store, names }: Pick<Arriving, 'store' | 'names'>,
  all: readonly Held[],
): Promise<void> {
  await Promise.all(
    all.map((one) => release({ store, names }, one, { delayMs: 0, counted: false })),
  )
}

/** Nobody waits for it any more. */
export async function giveBackLate(
  parts: Arriving,
  source: Source,
  msg: Msg,
  askedAt: number,
): Promise<void> {
  try {
    await giveBack(parts, [await arrived(parts, source, msg, askedAt)])
  } catch {
    // It comes back when the ack wait has run out.
  }
}

/**
 * Why a request was not served. A consumer that was deleted is made anew: it hands out everything again, so what was in hand of
 * it is ours no more.
 * @throws when the stream is gone or nobody answers
 */
export async function needConsumer({ store, hand }: Arriving, source: Source): Promise<void> {
  const { manager } = store.client
  const look = (): Promise<unknown> => manager.consumers.info(source.stream, source.consumer)
  if ((await orMissing(look())) !== undefined) return
  await manager.streams.info(source.stream)
  if (store.settings.topology === 'create') await makeConsumer(store, source)
  else await look()
  hand.loseAllOf(source)
}
