import type { BlobStore } from '../blobs/blob-store.ts'
import type { Clock } from '../model/clock.ts'
import { closedError } from '../model/closed-error.ts'
import type { Delivery, Sent } from '../model/delivery.ts'
import type { Envelope } from '../model/envelope.ts'
import { chain } from '../model/maybe-promise.ts'
import { refused } from '../transport/outcomes.ts'
import type { Subscription, Transaction, Transport } from '../transport/transport.ts'
import { blobName, referenceOf, referring } from './blob-reference.ts'
import { type Blobs, blobsOf } from './blobs.ts'
import { claimCheckShelf, wholeIfThere } from './claim-check-shelf.ts'

export interface ClaimCheckOptions {
  readonly blobs: BlobStore
  /** A body of more bytes than this goes to the blobs; what the transport below takes is a limit for it too. */
  readonly aboveBytes: number
  readonly clock: Clock
  readonly random: () => number
}

/**
 * Large bodies lie in a blob store, and a reference travels. Stands outermost: whatever is copied, kept aside or dies below is
 * the reference. The blob is there before the message is sent, so a crash leaves a blob without a message and never the other
 * way round. A delivery comes without its body and can fetch it: whoever knows its key already need not.
 */
export function claimCheck(inner: Transport, options: ClaimCheckOptions): Transport {
  const closing = new AbortController()
  const blobs = blobsOf(options.blobs, options.clock)
  const checking: Checking = {
    ...options,
    blobs,
    aboveBytes: Math.min(options.aboveBytes, inner.traits.limits.bodyBytes),
    maxBytes: options.blobs.maxBytes,
  }
  const { limits } = inner.traits
  const inlineBytes = limits.bodyBytes
  const bodyBytes = Math.max(inlineBytes, options.blobs.maxBytes)
  const { browse, shelf, transaction } = inner
  const get = browse?.get
  return {
    ...inner,
    traits: { ...inner.traits, limits: { ...limits, bodyBytes, inlineBytes } },
    send: (queue, batch, given) =>
      sendReferring(checking, queue, batch, {
        signal: given.signal,
        atomic: given.atomic === true,
        send: (some) => inner.send(queue, some, given),
      }),
    subscribe: async (queue, given) =>
      fetchingSubscription(await inner.subscribe(queue, given), blobs, queue),
    ...(shelf && { shelf: claimCheckShelf(shelf, blobs, closing.signal) }),
    ...(browse &&
      get && {
        browse: {
          ...browse,
          get: async (queue, id) => {
            const found = await get(queue, id)
            if (found === undefined) return undefined
            const envelope = await wholeIfThere(blobs, queue, found.envelope, closing.signal)
            return { ...found, envelope }
          },
        },
      }),
    ...(transaction && {
      transaction: (tx) =>
        chain(transaction(tx), (own) => own && inTransaction(own, checking, closing.signal)),
    }),
    close: () => {
      closing.abort(closedError(inner.name))
      return inner.close()
    },
  }
}

interface Checking {
  readonly blobs: Blobs
  readonly aboveBytes: number
  readonly maxBytes: number
  readonly clock: Clock
  readonly random: () => number
}

interface Sending {
  readonly signal: AbortSignal
  readonly atomic: boolean
  readonly send: (batch: readonly Envelope[]) => Promise<readonly Sent[]>
}

/** As many bodies on their way to the store at once. */
const PUTS_MAX = 16

async function sendReferring(
  checking: Checking,
  queue: string,
  batch: readonly Envelope[],
  { signal, atomic, send }: Sending,
): Promise<readonly Sent[]> {
  // Who gave up already gets the answer of the transport below.
  if (signal.aborted || !batch.some((one) => isLarge(one, checking))) return send(batch)
  const { blobs, clock, random } = checking
  const items = batch.map((envelope): Item => {
    const name = isLarge(envelope, checking) ? blobName(envelope, clock, random) : undefined
    return { envelope, name, outcome: undefined }
  })
  await putAll(blobs, queue, items, signal)
  const refusal = items.find(({ outcome }) => outcome !== undefined)?.outcome
  if (refusal !== undefined && atomic) for (const item of items) item.outcome = refusal
  const ready = items.filter(({ outcome }) => outcome === undefined)
  const sent = ready.length === 0 ? [] : await send(ready.map(asSent))
  for (const [i, item] of ready.entries()) item.outcome = sent[i]
  // Only what certainly was not stored: a duplicate may be the echo of our own sending, which then has our blob.
  await blobs.discard(items.flatMap((one) => (isNotApplied(one) ? (one.name ?? []) : [])))
  return items.map(({ outcome }) => outcome ?? refused('unknown', { outcome: 'unknown' }))
}

/** One message of a batch, which may hold the same one twice. */
interface Item {
  readonly envelope: Envelope
  /** Of its blob; undefined when its body travels. */
  readonly name: string | undefined
  outcome: Sent | undefined
}

function isLarge({ body }: Envelope, { aboveBytes, maxBytes }: Checking): boolean {
  return body.byteLength > aboveBytes && body.byteLength <= maxBytes
}

async function putAll(
  blobs: Blobs,
  queue: string,
  items: readonly Item[],
  signal: AbortSignal,
): Promise<void> {
  const left = items.values()
  const putSome = async (): Promise<void> => {
    for (const item of left) {
      if (item.name === undefined) continue
      const fault = await blobs.put(queue, item.envelope, item.name, signal)
      if (fault !== undefined) item.outcome = { ok: false, fault }
    }
  }
  await Promise.all(Array.from({ length: Math.min(PUTS_MAX, items.length) }, putSome))
}

function asSent({ envelope, name }: Item): Envelope {
  return name === undefined ? envelope : referring(envelope, name)
}

function isNotApplied({ outcome }: Item): boolean {
  return outcome?.ok === false && outcome.fault.outcome === 'notApplied'
}

/** Nothing can be waited for in a synchronous transaction: what the transport takes goes in whole, and it refuses the rest. */
function inTransaction(own: Transaction, checking: Checking, signal: AbortSignal): Transaction {
  if (own.synchronous) return own
  return {
    ...own,
    send: (queue, batch, options = {}) =>
      sendReferring(checking, queue, batch, {
        signal,
        atomic: options.atomic === true,
        send: async (some) => own.send(queue, some, options),
      }),
  }
}

function fetchingSubscription(inner: Subscription, blobs: Blobs, queue: string): Subscription {
  const closing = new AbortController()
  const withFetch = (delivery: Delivery): Delivery => {
    if (referenceOf(delivery.envelope) === undefined) return delivery
    return { ...delivery, fetchBody: blobs.fetcher(queue, delivery.envelope, closing.signal) }
  }
  return {
    ...inner,
    receive: async (options) => (await inner.receive(options)).map(withFetch),
    close: () => {
      closing.abort(closedError('the subscription'))
      return inner.close()
    },
  }
}
