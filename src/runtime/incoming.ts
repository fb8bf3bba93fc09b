import { type Validated, validate } from '../codec/validate.ts'
import { BLOB_HEADER } from '../layers/blob-reference.ts'
import type { Delivery } from '../model/delivery.ts'
import type { Envelope } from '../model/envelope.ts'
import { PermanentError } from '../model/errors.ts'
import { isPromise, type MaybePromise } from '../model/maybe-promise.ts'
import { derivedKey } from './derived-key.ts'
import type { Message } from './message.ts'
import type { AnyQueue } from './queue.ts'

/** A delivery made readable, or why it cannot be. */
export type Incoming =
  | { readonly ok: true; readonly delivery: Delivery; readonly message: Message<unknown> }
  | { readonly ok: false; readonly delivery: Delivery; readonly error: unknown }

export interface Receiver {
  readonly queue: AnyQueue
  /** Any; whether there is one decides whether a message needs a key that stays. */
  readonly inbox: object | undefined
}

/** Decodes and validates: the handler and the key function get the schema's output. Never throws. */
export function incoming(
  receiver: Receiver,
  delivery: Delivery,
  envelope: Envelope = delivery.envelope,
): MaybePromise<Incoming> {
  const { queue } = receiver
  if (envelope === delivery.envelope && BLOB_HEADER in envelope.headers) {
    return unreadable(
      delivery,
      'its body lies in a blob store; give createMillrace the claimCheck of its sender',
      'the payload is not with the message',
    )
  }
  try {
    const judged = validate(queue.schema, queue.codec.decode(envelope.body))
    if (!isPromise(judged)) return readable(receiver, delivery, envelope, judged)
    return judged
      .then((outcome) => readable(receiver, delivery, envelope, outcome))
      .catch((error: unknown) =>
        unreadable(delivery, error, 'the stored payload could not be checked'),
      )
  } catch (error) {
    return unreadable(delivery, error, 'the stored payload could not be read')
  }
}

function readable(
  receiver: Receiver,
  delivery: Delivery,
  envelope: Envelope,
  outcome: Validated<unknown>,
): Incoming {
  if ('issues' in outcome) {
    const first = outcome.issues[0]
    const where = first ? ` at "${first.path}": ${first.message}` : ''
    const cause = new Error(`${outcome.issues.length} issue(s)${where}`)
    return unreadable(delivery, cause, 'the stored payload does not fit the schema')
  }
  try {
    const message = messageOf(receiver, delivery, envelope, outcome.value)
    return { ok: true, delivery, message }
  } catch (error) {
    return unreadable(delivery, error, 'the message has no key')
  }
}

function unreadable(delivery: Delivery, cause: unknown, what: string): Incoming {
  const why = cause instanceof Error ? cause.message : String(cause)
  return { ok: false, delivery, error: new PermanentError(`${what}: ${why}`, { cause }) }
}

function messageOf(
  { queue, inbox }: Receiver,
  delivery: Delivery,
  envelope: Envelope,
  payload: unknown,
): Message<unknown> {
  const given = envelope.idempotencyKey ?? derivedKey(queue, payload)
  if (given === undefined && delivery.idIsPassing && inbox !== undefined) {
    throw new Error(
      `it came without an id, so that the inbox could not know it again; give queue "${queue.name}" an idempotencyKey, or let its sender set a message id; then redrive`,
    )
  }
  return {
    id: envelope.id,
    payload,
    idempotencyKey: given ?? envelope.id,
    attempt: delivery.history.counted + 1,
    headers: envelope.headers,
    sentAt: delivery.sentAt,
  }
}
