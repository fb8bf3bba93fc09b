import type { StoredMsg } from '@nats-io/jetstream'
import type { DeadLetter } from '../../model/dead-letter.ts'
import type { Delivery } from '../../model/delivery.ts'
import type { Envelope } from '../../model/envelope.ts'
import { type AttemptHistory, type ErrorClass, errorClassOf } from '../../model/history.ts'
import { read, readString } from '../../model/probe.ts'
import { answeredFault } from './faults.ts'
import { historyText } from './history.ts'
import type { QueueNames } from './names.ts'
import { readAnswer, type Store } from './store.ts'
import { HEADERS_MAX } from './traits.ts'
import { DEATH, HISTORY, headersSize, parsed, readWire, SENT_AT, wireHeaders } from './wire.ts'

/** Of the 64 KiB of all headers; the sender's own may take the rest. */
export const HISTORY_MAX = 32_768
const REASON_MAX = 4_096

export interface Death {
  readonly errorClass: ErrorClass
  readonly reason: string
  readonly history: AttemptHistory
}

/** Stores the letter under the message's id; one that is there already is replaced, so that a second try stores one. */
export async function bury(
  store: Store,
  names: QueueNames,
  { envelope, sentAt }: Delivery,
  { errorClass, reason, history }: Death,
): Promise<void> {
  const { client, timeoutMs } = store
  const owner = await ownerOf(store, names)
  const { base, roomBytes } = headersWithRoom(store, names, envelope, sentAt)
  const death = JSON.stringify({
    errorClass,
    reason: reason.slice(0, Math.min(REASON_MAX, roomBytes / REASON_PART)),
    owner,
  })
  const historyMax = Math.min(HISTORY_MAX, roomBytes - Buffer.byteLength(death))
  const headers = client.headers({
    ...base,
    [HISTORY]: historyText(history, historyMax),
    [DEATH]: death,
  })
  const subject = names.dead(envelope.id)
  const msg = await store.request(subject, envelope.body, { headers, timeout: timeoutMs })
  const { error } = readAnswer(msg)
  if (error !== undefined) {
    throw new Error('the dead letter could not be stored', { cause: answeredFault(error).cause })
  }
}

/**
 * The headers of a message, and what is left for its attempts. A foreign message may use nearly all that the server takes; then
 * its headers are left out, because a letter that cannot be stored would come back for ever.
 */
export function headersWithRoom(
  { server: { maxPayload } }: Store,
  { queue }: QueueNames,
  envelope: Envelope,
  sentAt: number,
): { readonly base: Record<string, string>; readonly roomBytes: number } {
  const most = Math.min(HEADERS_MAX, maxPayload - envelope.body.byteLength) - RESERVE
  const all = { ...wireHeaders(queue, envelope), [SENT_AT]: String(sentAt) }
  const fits = most - headersSize(all) >= ROOM_MIN
  const bare = { ...wireHeaders(queue, { ...envelope, headers: {} }), [SENT_AT]: String(sentAt) }
  const base = fits ? all : bare
  return { base, roomBytes: Math.max(0, most - headersSize(base)) }
}

/** Names and line ends of what is added, and a history without records. */
const RESERVE = 512
const ROOM_MIN = 1_024
/** Of the room, for the reason; UTF-8 may take four bytes for a character. */
const REASON_PART = 8

/** The queue's owner at this moment, as the last `ensure` said. */
async function ownerOf({ client }: Store, names: QueueNames): Promise<string> {
  const last_by_subj = names.fact('owner')
  const stored = await client.manager.streams.getMessage(names.shelf, { last_by_subj })
  return stored?.string() ?? ''
}

/** A stored letter; its body is empty when only headers were asked for. */
export function letterOf(names: QueueNames, stored: Stored): DeadLetter {
  const wire = readWire(stored.headers)
  const death = parsed(stored.headers?.get(DEATH))
  const { idempotencyKey, orderingKey } = wire
  return {
    envelope: {
      id: wire.id ?? '',
      body: stored.data,
      headers: wire.headers,
      priority: 0,
      ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
      ...(orderingKey === undefined ? {} : { orderingKey }),
    },
    queue: names.queue,
    owner: readString(death, 'owner') ?? '',
    errorClass: errorClassOf(read(death, 'errorClass')),
    reason: readString(death, 'reason') ?? '',
    history: wire.history,
    sentAt: wire.sentAt ?? stored.deadAt,
    deadAt: stored.deadAt,
  }
}

/** What the stream of dead letters holds of one. */
export interface Stored {
  readonly seq: number
  readonly headers: StoredMsg['header'] | undefined
  readonly data: Uint8Array
  /** Epoch ms by the server. */
  readonly deadAt: number
}

export async function storedLetter(
  { client }: Store,
  names: QueueNames,
  id: string,
): Promise<Stored | undefined> {
  const stored = await client.manager.streams.getMessage(names.shelf, {
    last_by_subj: names.dead(id),
  })
  if (stored === null) return undefined
  const { seq, header, data, time } = stored
  return { seq, headers: header, data, deadAt: time.getTime() }
}
