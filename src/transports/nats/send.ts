import { closedError } from '../../model/closed-error.ts'
import type { Sent } from '../../model/delivery.ts'
import type { Envelope } from '../../model/envelope.ts'
import { OptionsError } from '../../model/errors.ts'
import type { Fault } from '../../model/fault.ts'
import { untilAborted } from '../../model/until-aborted.ts'
import { inKeyOrder } from '../../transport/in-key-order.ts'
import { duplicateOf, refused, stored } from '../../transport/outcomes.ts'
import { ownFault } from '../../transport/own-errors.ts'
import { refusalOf } from '../../transport/refusal.ts'
import type { SendOptions } from '../../transport/transport.ts'
import { answeredFault, isNoResponders, natsFault } from './faults.ts'
import { laneOf, lanesIn } from './lane.ts'
import type { QueueNames } from './names.ts'
import { lanesFor, needStream, queueNames, readAnswer, type Store } from './store.ts'
import { takes } from './subjects.ts'
import { SENT_HEADERS_MAX } from './traits.ts'
import { headersSize, SENT_AT, wireHeaders } from './wire.ts'

/**
 * Publishes side by side over one connection, which keeps their order; each is confirmed by itself. On a queue with lanes one message of
 * a key at a time: any of them may fail while a stream changes its leader, and what follows it must not be stored before it.
 */
export async function send(
  store: Store,
  queue: string,
  batch: readonly Envelope[],
  { signal, atomic = false }: SendOptions,
): Promise<readonly Sent[]> {
  signal.throwIfAborted()
  if (store.closing.aborted) throw closedError('the transport')
  if (atomic) return batch.map(() => refused('invalid'))
  const names = queueNames(store, queue)
  const timed = batch.some(isTimed)
  const now = timed ? await serverNow(store, names) : 0
  const at: Moment = { now, keptMs: timed ? await store.streamAge.of(names.stream) : 0 }
  const sideBySide = async (some: readonly Envelope[]): Promise<readonly Sent[]> => {
    signal.throwIfAborted()
    if (store.closing.aborted) throw closedError('the transport')
    return await Promise.all(some.map((envelope) => sendOne(store, names, envelope, at)))
  }
  const isOrdered = lanesFor(store, queue) !== undefined
  const all = isOrdered ? inKeyOrder(batch, sideBySide, diagnose) : sideBySide(batch)
  // What was published when one of them fires may be stored.
  return await untilAborted(all, [signal, store.closing])
}

function diagnose(error: unknown): Fault {
  return ownFault(error) ?? natsFault(error)
}

/** @throws MILLRACE_UNKNOWN_QUEUE where the queue's streams are not there */
async function serverNow(store: Store, names: QueueNames): Promise<number> {
  try {
    return await store.serverClock.now(names)
  } catch (error) {
    if (isNoResponders(error)) await needStream(store, names)
    throw error
  }
}

function isTimed({ delayMs = 0, readyAt }: Envelope): boolean {
  return delayMs > 0 || readyAt !== undefined
}

interface Moment {
  /** Epoch ms by the server; known where something is to wait. */
  readonly now: number
  /** See `StreamAge`. */
  readonly keptMs: number
}

async function sendOne(
  store: Store,
  names: QueueNames,
  envelope: Envelope,
  { now, keptMs }: Moment,
): Promise<Sent> {
  const refusal = refusalOf(envelope, store.traits)
  if (refusal !== undefined) return refusal
  if (envelope.remember !== undefined && envelope.remember.length > 0) return refused('invalid')
  const dueAt = envelope.readyAt ?? now + (envelope.delayMs ?? 0)
  const scheduled = isTimed(envelope) && dueAt > now
  if (scheduled && dueAt - now >= keptMs) return outlived(names, dueAt - now, keptMs)
  const lanes = lanesFor(store, names.queue)
  const headers = {
    ...wireHeaders(names.queue, envelope),
    'Nats-Msg-Id': messageId(envelope),
    ...(scheduled ? schedule(names, dueAt, now) : {}),
  }
  if (headersSize(headers) > SENT_HEADERS_MAX) return refused('tooLarge')
  const subject = scheduled ? names.later(envelope.id) : subjectOf(names, envelope, lanes)
  return await publish(store, names, { subject, body: envelope.body, headers, id: envelope.id })
}

function outlived({ queue, stream }: QueueNames, delayMs: number, keptMs: number): Sent {
  const problem = `stream ${stream} of queue "${queue}" drops messages after ${keptMs} ms (max_age), and this one is to wait ${Math.round(delayMs)} ms; send it with a shorter delay, or set max_age to 0`
  return refused('invalid', { cause: new OptionsError('nats', [problem]) })
}

/** Where a message without a delay goes: with a key to its lane, if the queue has lanes. */
export function subjectOf(
  names: QueueNames,
  { orderingKey }: Pick<Envelope, 'orderingKey'>,
  lanes: number | undefined,
): string {
  if (orderingKey === undefined || !lanes) return names.subject
  return names.lane(laneOf(orderingKey, lanes), lanes)
}

/** The server keeps the message under a subject of its own and publishes it to `target` when it is due. */
function schedule(names: QueueNames, dueAt: number, now: number): Record<string, string> {
  return {
    'Nats-Schedule': `@at ${new Date(Math.ceil(dueAt)).toISOString()}`,
    'Nats-Schedule-Target': names.subject,
    // The server stores it anew when it is due.
    [SENT_AT]: String(Math.round(now)),
  }
}

/** By which the server knows a message that it has stored; a copy is another message. */
function messageId({ id, copy = 0 }: Envelope): string {
  return copy === 0 ? id : `${id} copy ${copy}`
}

export interface Publication {
  readonly subject: string
  readonly body: Uint8Array
  readonly headers: Readonly<Record<string, string>>
  readonly id: string
}

export async function publish(
  store: Store,
  names: QueueNames,
  { subject, body, headers, id }: Publication,
): Promise<Sent> {
  try {
    const answer = readAnswer(
      await store.request(subject, body, {
        headers: store.client.headers(headers),
        timeout: store.timeoutMs,
      }),
    )
    if (answer.error !== undefined) return { ok: false, fault: answeredFault(answer.error) }
    return answer.duplicate === true ? duplicateOf(id) : stored(id)
  } catch (error) {
    if (isNoResponders(error)) return await missing(store, names, subject)
    return { ok: false, fault: natsFault(error) }
  }
}

/** Nobody took it: the queue is not there or has other lanes, or its stream has no leader just now. */
async function missing(store: Store, names: QueueNames, subject: string): Promise<Sent> {
  try {
    const { subjects } = await needStream(store, names)
    if (takes(subjects, subject)) return refused('unavailable', { retryable: true })
    return refused('invalid', { cause: new OptionsError('nats', [otherLanes(names, subjects)]) })
  } catch (error) {
    return { ok: false, fault: diagnose(error) }
  }
}

function otherLanes(names: QueueNames, subjects: readonly string[]): string {
  const lanes = lanesIn(names, subjects)
  const of = `stream ${names.stream} of queue "${names.queue}"`
  return lanes === 0
    ? `${of} has no lanes, so a message with an ordering key would be out of order; define the queue with orderingKey, or leave the key out`
    : `${of} has ${lanes} lanes, and the message was meant for another number of them; pass lanes: ${lanes}`
}
