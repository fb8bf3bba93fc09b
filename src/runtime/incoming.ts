import { validate } from '../codec/validate.ts'
import { BLOB_HEADER } from '../layers/blob-reference.ts'
import type { Delivery } from '../model/delivery.ts'
import type { Envelope } from '../model/envelope.ts'
import { PermanentError } from '../model/errors.ts'
import { chain, type MaybePromise } from '../model/maybe-promise.ts'
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
  const failed = (cause: unknown, what: string): Incoming => ({
    ok: false,
    delivery,
    error: new PermanentError(
      `${what}: ${cause instanceof Error ? cause.message : String(cause)}`,
      {
        cause,
      },
    ),
  })
  if (envelope === delivery.envelope && BLOB_HEADER in envelope.headers) {
    return failed(
      'its body lies in a blob store; give createMillrace the claimCheck of its sender',
      'the payload is not with the message',
    )
  }
  try {
    const decoded = queue.codec.decode(envelope.body)
    const read = chain(validate(queue.schema, decoded), (outcome): Incoming => {
      if ('issues' in outcome) {
        const first = outcome.issues[0]
        const where = first ? ` at "${first.path}": ${first.message}` : ''
        return failed(
          new Error(`${outcome.issues.length} issue(s)${where}`),
          'the stored payload does not fit the schema',
        )
      }
      try {
        return {
          ok: true,
          delivery,
          message: messageOf(receiver, delivery, envelope, outcome.value),
        }
      } catch (error) {
        return failed(error, 'the message has no key')
      }
    })
    return read instanceof Promise
      ? read.catch((error: unknown) => failed(error, 'the stored payload could not be checked'))
      : read
  } catch (error) {
    return failed(error, 'the stored payload could not be read')
  }
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
