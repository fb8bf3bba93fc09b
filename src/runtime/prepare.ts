import { fingerprint } from '../codec/canonical.ts'
import { validate } from '../codec/validate.ts'
import type { Clock } from '../model/clock.ts'
import type { Envelope, RememberedKey } from '../model/envelope.ts'
import { InvalidPayloadError, PayloadTooLargeError } from '../model/errors.ts'
import { newId } from '../model/ids.ts'
import { chain, type MaybePromise } from '../model/maybe-promise.ts'
import type { AnyQueue } from './queue.ts'
import type { SendOptions } from './send.ts'
import { checkSendOptions } from './send-options.ts'

export interface PrepareContext {
  readonly clock: Clock
  readonly random: () => number
  readonly maxBytes: number
}

/**
 * Payload to envelope. What the receiver will see is what is checked: the payload is serialised, and its decoded form
 * validated. Stays synchronous when the schema is, so that a send inside a synchronous transaction happens in it.
 * @throws MILLRACE_INVALID_OPTIONS, MILLRACE_UNSERIALIZABLE_PAYLOAD, MILLRACE_PAYLOAD_TOO_LARGE, MILLRACE_INVALID_PAYLOAD
 */
export function prepare(
  queue: AnyQueue,
  payload: unknown,
  options: SendOptions | undefined,
  context: PrepareContext,
  index?: number,
): MaybePromise<Envelope> {
  const checked = checkSendOptions(options, queue.name)
  const body = queue.codec.encode(payload)
  if (body.byteLength > context.maxBytes) {
    throw new PayloadTooLargeError(queue.name, body.byteLength, context.maxBytes)
  }
  const decoded = queue.codec.decode(body)
  return chain(validate(queue.schema, decoded), (outcome) => {
    if ('issues' in outcome) throw new InvalidPayloadError(queue.name, outcome.issues, index)
    const envelope: Envelope = {
      id: options?.id ?? newId(context.clock, context.random),
      body,
      headers: checked.headers,
      priority: checked.priority,
      ...(options?.idempotencyKey === undefined ? {} : { idempotencyKey: options.idempotencyKey }),
      ...(options?.orderingKey === undefined ? {} : { orderingKey: options.orderingKey }),
      ...(checked.delayMs === undefined ? {} : { delayMs: checked.delayMs }),
      ...(checked.readyAt === undefined ? {} : { readyAt: checked.readyAt }),
      ...rememberedKeys(queue, decoded, options),
    }
    return envelope
  })
}

function rememberedKeys(
  queue: AnyQueue,
  decoded: unknown,
  options: SendOptions | undefined,
): { readonly remember?: readonly RememberedKey[] } {
  const { idempotencyKey, dedupeKey } = options ?? {}
  if (idempotencyKey === undefined && dedupeKey === undefined) return {}
  const { windowMs } = queue.dedupe
  const remember: RememberedKey[] = []
  if (idempotencyKey !== undefined) {
    remember.push({
      kind: 'idempotency',
      key: idempotencyKey,
      fingerprint: fingerprint(decoded),
      windowMs,
    })
  }
  if (dedupeKey !== undefined) {
    remember.push({ kind: 'dedupe', key: dedupeKey, fingerprint: undefined, windowMs })
  }
  return { remember }
}
