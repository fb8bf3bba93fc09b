import { fingerprint } from '../codec/canonical.ts'
import type { Codec } from '../codec/codec.ts'
import { type Validated, validate } from '../codec/validate.ts'
import type { Envelope, RememberedKey } from '../model/envelope.ts'
import {
  InvalidPayloadError,
  MillraceError,
  OptionsError,
  PayloadTooLargeError,
} from '../model/errors.ts'
import type { MakeId } from '../model/ids.ts'
import { isPromise, type MaybePromise } from '../model/maybe-promise.ts'
import type { Share } from '../transport/fair-share.ts'
import { type Backend, LEAVES_KEY } from './backend-limits.ts'
import { derivedKey, derivedOrderingKey, derivedShare } from './derived-key.ts'
import type { AnyQueue } from './queue.ts'
import type { SendOptions } from './send.ts'
import { type CheckedSendOptions, checkSendOptions } from './send-options.ts'

export interface PrepareContext {
  readonly newId: MakeId
  readonly backend: Backend
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
  item: BatchItem = {},
): MaybePromise<Envelope> {
  const checked = item.checked ?? checkSendOptions(options, queue.name, context.backend, item.index)
  refuseDelayInOrder(queue, checked, context.backend)
  const { bytes: body, decoded } = encodeDecoded(queue.codec, payload, item.index)
  const { limits } = context.backend.traits
  if (body.byteLength > limits.bodyBytes) {
    throw new PayloadTooLargeError(queue.name, body.byteLength, limits, item.index)
  }
  const draft: Draft = { queue, options, checked, context, item, body, decoded }
  const judged = validate(queue.schema, decoded)
  return isPromise(judged) ? acceptedLater(judged, draft) : accepted(judged, draft)
}

interface Draft {
  readonly queue: AnyQueue
  readonly options: SendOptions | undefined
  readonly checked: CheckedSendOptions
  readonly context: PrepareContext
  readonly item: BatchItem
  readonly body: Uint8Array
  readonly decoded: unknown
}

async function acceptedLater(judged: Promise<Validated<unknown>>, draft: Draft): Promise<Envelope> {
  return accepted(await judged, draft)
}

function accepted(outcome: Validated<unknown>, draft: Draft): Envelope {
  const { queue, options, checked, context, item, body, decoded } = draft
  if ('issues' in outcome) throw new InvalidPayloadError(queue.name, outcome.issues, item.index)
  const { value } = outcome
  if (queue.idempotencyKey !== undefined && options?.idempotencyKey === undefined) {
    keyFrom(derivedKey, queue, value, item.index)
  }
  const id = options?.id ?? context.newId(item.again)
  const plain: Envelope = { id, body, headers: checked.headers, priority: checked.priority }
  const ordered = queue.orderingKey === undefined ? plain : keyed(plain, draft, value)
  const envelope = queue.fairBy === undefined ? ordered : { ...ordered, ...shared(draft, value) }
  if (options === undefined) return envelope
  return { ...envelope, ...choices(options, checked), ...rememberedKeys(queue, decoded, options) }
}

/** As with the idempotency key, one that the sender names spares the function. */
function keyed(envelope: Envelope, { queue, item, options }: Draft, payload: unknown): Envelope {
  if (options?.orderingKey !== undefined) return envelope
  const orderingKey = keyFrom(derivedOrderingKey, queue, payload, item.index)
  return orderingKey === undefined ? envelope : { ...envelope, orderingKey }
}

function shared({ queue, item }: Draft, payload: unknown): Share {
  return derivedFrom(() => derivedShare(queue, payload), queue, item.index, 'has no fair key')
}

/** The idempotency key is the receiver's, and kept nowhere; but what cannot have one would die there. */
function keyFrom(
  derived: typeof derivedKey | typeof derivedOrderingKey,
  queue: AnyQueue,
  payload: unknown,
  index: number | undefined,
): string | undefined {
  const what = derived === derivedKey ? 'has no idempotency key' : 'has no ordering key'
  return derivedFrom(() => derived(queue, payload), queue, index, what)
}

function derivedFrom<T>(
  derive: () => T,
  queue: AnyQueue,
  index: number | undefined,
  what: string,
): T {
  try {
    return derive()
  } catch (error) {
    if (!(error instanceof Error)) throw error
    const issue = { message: error.message.slice(0, ISSUE_MAX).toWellFormed(), path: '' }
    throw new InvalidPayloadError(queue.name, [issue], index, { what, cause: error.cause })
  }
}

const ISSUE_MAX = 500

function refuseDelayInOrder(
  queue: AnyQueue,
  { delayMs = 0, readyAt }: CheckedSendOptions,
  { name, traits }: Backend,
): void {
  if (queue.order?.delayed !== 'refuse' || (delayMs === 0 && readyAt === undefined)) return
  const why =
    traits.delayLeavesOrder === true
      ? `${name} ${LEAVES_KEY}`
      : "the queue keeps its keys in order, and a key would wait for a message that waits; leave it out, or define the queue with delayed: 'wait'"
  throw new OptionsError(`send to queue "${queue.name}"`, [
    `${delayMs > 0 ? 'delayMs' : 'readyAt'}: ${why}`,
  ])
}

/** What a batch knows of its items. */
export interface BatchItem {
  readonly index?: number
  /** Options that all items share are checked once. */
  readonly checked?: CheckedSendOptions
  /** Not the first: the moment of its id is that of the one before. */
  readonly again?: boolean
}

function encodeDecoded(
  codec: Codec,
  payload: unknown,
  index: number | undefined,
): ReturnType<NonNullable<Codec['encodeDecoded']>> {
  try {
    if (codec.encodeDecoded !== undefined) return codec.encodeDecoded(payload)
    const bytes = codec.encode(payload)
    return { bytes, decoded: codec.decode(bytes) }
  } catch (error) {
    throw index === undefined ? error : inBatch(error, index)
  }
}

/** A codec does not know of batches. */
function inBatch(error: unknown, index: number): unknown {
  if (!(error instanceof MillraceError)) return error
  const { code, message, cause, retryable, fields } = error
  return new MillraceError(code, `payload ${index} of the batch: ${message}`, {
    cause,
    retryable,
    fields: { ...fields, index },
  })
}

/** Fields that are only there when somebody chose them. */
function choices(options: SendOptions, checked: CheckedSendOptions): Partial<Envelope> {
  const { idempotencyKey, orderingKey } = options
  const { delayMs, readyAt } = checked
  return {
    ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
    ...(orderingKey === undefined ? {} : { orderingKey }),
    ...(delayMs === undefined ? {} : { delayMs }),
    ...(readyAt === undefined ? {} : { readyAt }),
  }
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
