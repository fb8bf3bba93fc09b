import type { Codec } from '../codec/codec.ts'
import type { DeadLetter } from '../model/dead-letter.ts'
import type { Envelope } from '../model/envelope.ts'
import type { StoredMessage } from '../transport/transport.ts'
import type { DeadLetterView, MessageView } from './admin.ts'

/** What views need to know of a queue; the runtime's queue definitions have it. */
export interface ViewedQueue {
  readonly name: string
  readonly codec: Codec
  /** As the schema's output is not at hand here, a key that cannot be derived shows as the message id. */
  idempotencyKey?(payload: unknown): string
}

export function deadLetterView(queue: ViewedQueue, letter: DeadLetter): DeadLetterView {
  const { payload, ...bytes } = decoded(queue.codec, letter.envelope)
  return {
    id: letter.envelope.id,
    queue: letter.queue,
    payload,
    ...bytes,
    headers: letter.envelope.headers,
    idempotencyKey: keyOf(queue, letter.envelope, payload),
    errorClass: letter.errorClass,
    reason: letter.reason,
    attempts: letter.history.records,
    owner: letter.owner,
    sentAt: letter.sentAt,
    deadAt: letter.deadAt,
    redrives: letter.history.redrives,
  }
}

export function messageView(queue: ViewedQueue, stored: StoredMessage): MessageView {
  const { payload, ...bytes } = decoded(queue.codec, stored.envelope)
  return {
    id: stored.envelope.id,
    queue: queue.name,
    state: stored.state,
    payload,
    ...bytes,
    headers: stored.envelope.headers,
    idempotencyKey: keyOf(queue, stored.envelope, payload),
    attempt: stored.history.counted + 1,
    priority: stored.envelope.priority,
    sentAt: stored.sentAt,
    readyAt: stored.readyAt,
    attempts: stored.history.records,
  }
}

export function deadMessageView(queue: ViewedQueue, letter: DeadLetter): MessageView {
  const view = deadLetterView(queue, letter)
  return {
    id: view.id,
    queue: view.queue,
    state: 'dead',
    payload: view.payload,
    ...(view.bodyBase64 !== undefined && { bodyBase64: view.bodyBase64 }),
    headers: view.headers,
    idempotencyKey: view.idempotencyKey,
    attempt: letter.history.counted,
    priority: letter.envelope.priority,
    sentAt: view.sentAt,
    readyAt: undefined,
    attempts: view.attempts,
  }
}

/** The payload as it is stored; what is no payload of the codec is shown as text, with its bytes, which the text may have lost. */
function decoded(codec: Codec, { body }: Envelope): Pick<DeadLetterView, 'payload' | 'bodyBase64'> {
  try {
    return { payload: codec.decode(body) }
  } catch {
    const bodyBase64 = Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString('base64')
    return { payload: new TextDecoder().decode(body), bodyBase64 }
  }
}

function keyOf(queue: ViewedQueue, envelope: Envelope, payload: unknown): string {
  if (envelope.idempotencyKey !== undefined) return envelope.idempotencyKey
  try {
    const key: unknown = queue.idempotencyKey?.(payload)
    return typeof key === 'string' && key !== '' ? key : envelope.id
  } catch {
    return envelope.id
  }
}
