import type { DeadLetter } from '../model/dead-letter.ts'
import type { Delivery } from '../model/delivery.ts'
import type { Envelope } from '../model/envelope.ts'
import {
  type AttemptHistory,
  type AttemptRecord,
  afterRedrive,
  errorClassOf,
  freshHistory,
  saturated,
} from '../model/history.ts'
import type { Attempts } from '../transport/settling.ts'

/** Everything under it is ours; a sender's header with it is refused. */
export const RESERVED_PREFIX = 'millrace-'
export const PAST_HEADER = 'millrace-past'

/**
 * Longest header. RabbitMQ takes all headers of a message in one frame (131,072 bytes by default), SQS counts them in the
 * message's size; what is longer loses stacks first, then the records in the middle.
 */
const HEADER_MAX = 16_384

/** The message that goes on after this handing-out, as its copy. */
export function nextCopy(
  { envelope, sentAt, deliveries = 1, idIsPassing }: Delivery,
  { history, alone }: Attempts,
): Envelope {
  const past = { history, sentAt, copy: (envelope.copy ?? 0) + 1, deliveries }
  return withPast(envelope, {
    ...past,
    ...(alone && { alone }),
    ...(idIsPassing && { idIsPassing }),
  })
}

/** What a message went through, carried in a header where the backend keeps nothing beside it. */
export interface Past {
  readonly history: AttemptHistory
  readonly sentAt: number
  /** How often it was copied. */
  readonly copy: number
  /** How often it was handed out before the last copy. */
  readonly deliveries: number
  /** Its last holder but one died with it, and it did not run since. */
  readonly alone?: boolean
  /** Its sender gave it no id: whatever this one knows it by, another copy of the message may have another. */
  readonly idIsPassing?: true
}

/** The same message, as the copy that continues it. */
export function withPast(envelope: Envelope, past: Past): Envelope {
  const { remember: _, readyAt: __, delayMs: ___, ...kept } = envelope
  const headers = { ...envelope.headers, [PAST_HEADER]: written(past) }
  return { ...kept, headers, copy: past.copy }
}

/** A delivery with its past taken out of the headers. */
export function readPast(delivery: Delivery): Delivery {
  const { [PAST_HEADER]: text, ...headers } = delivery.envelope.headers
  if (text === undefined) return { ...delivery, history: freshHistory }
  const { copy, deliveries: before, alone, ...past } = parsed(text, delivery.sentAt)
  const envelope = { ...delivery.envelope, headers, copy }
  const deliveries = delivery.deliveries && saturated(before + delivery.deliveries)
  return { ...delivery, ...past, envelope, deliveries, alone: alone || delivery.alone }
}

/** A dead letter as a store keeps it: what its message went through stays in the header too, so that a redrive goes on there. */
export function letterWithPast(
  { envelope, sentAt, deliveries = 1 }: Delivery,
  history: AttemptHistory,
): Pick<DeadLetter, 'envelope' | 'history' | 'sentAt'> {
  const past = { history, sentAt, copy: envelope.copy ?? 0, deliveries }
  return { envelope: withPast(envelope, past), history, sentAt }
}

/** What came out of a store, which keeps the headers alone, as the copy that it is. */
export function asCopied(envelope: Envelope): Envelope {
  const text = envelope.headers[PAST_HEADER]
  return text === undefined ? envelope : { ...envelope, copy: parsed(text, 0).copy }
}

/** A stored letter as a user sees it. */
export function withoutPast(letter: DeadLetter): DeadLetter {
  const { [PAST_HEADER]: _, ...headers } = letter.envelope.headers
  return { ...letter, envelope: { ...letter.envelope, headers } }
}

/** The message of a stored letter, as it starts again. */
export function redrivenCopy({ envelope, history, sentAt }: DeadLetter): Envelope {
  // From here on there is one copy alone, the letter's.
  const { idIsPassing: _, ...past } = parsed(envelope.headers[PAST_HEADER] ?? '', sentAt)
  return withPast(envelope, { ...past, history: afterRedrive(history), copy: past.copy + 1 })
}

function written(past: Past): string {
  const { records } = past.history
  const whole = serialized(past, records)
  if (whole.length <= HEADER_MAX) return whole
  const bare: readonly AttemptRecord[] = records.map(({ stack: _, ...record }) => record)
  for (let kept = bare; ; kept = withoutMiddle(kept)) {
    const text = serialized(past, kept)
    if (text.length <= HEADER_MAX || kept.length <= 1) return text
  }
}

function withoutMiddle(records: readonly AttemptRecord[]): readonly AttemptRecord[] {
  return records.toSpliced(Math.floor((records.length - 1) / 2), 1)
}

/** ASCII alone: NATS and HTTP-like headers know no other. */
function serialized({ history, ...past }: Past, records: readonly AttemptRecord[]): string {
  return JSON.stringify({ ...history, records, ...past }).replace(
    /[^ -~]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}

/** Somebody may have written it by hand: what cannot be read counts as not written. */
function parsed(text: string, sentAt: number): Past {
  const value = jsonObject(text)
  const throttledSince = finite(value.throttledSince)
  return {
    history: {
      counted: finite(value.counted) ?? 0,
      crashes: finite(value.crashes) ?? 0,
      throttledSince,
      records: Array.isArray(value.records) ? value.records.flatMap(record) : [],
      redrives: finite(value.redrives) ?? 0,
    },
    sentAt: finite(value.sentAt) ?? sentAt,
    copy: finite(value.copy) ?? 0,
    deliveries: finite(value.deliveries) ?? 0,
    alone: value.alone === true,
    ...(value.idIsPassing === true && { idIsPassing: true }),
  }
}

function jsonObject(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? { ...value } : {}
  } catch {
    return {}
  }
}

function finite(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : undefined
}

function record(value: unknown): readonly AttemptRecord[] {
  if (typeof value !== 'object' || value === null) return []
  const { at, errorClass, code, message, stack }: Readonly<Record<string, unknown>> = { ...value }
  const time = finite(at)
  if (time === undefined || typeof code !== 'string' || typeof message !== 'string') return []
  const known = { at: time, errorClass: errorClassOf(errorClass), code, message }
  return [typeof stack === 'string' ? { ...known, stack } : known]
}
