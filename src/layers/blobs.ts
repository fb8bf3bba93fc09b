import type { BlobStore } from '../blobs/blob-store.ts'
import type { Clock } from '../model/clock.ts'
import type { FetchedBody } from '../model/delivery.ts'
import { messageOfError } from '../model/describe-error.ts'
import type { Envelope } from '../model/envelope.ts'
import { MillraceError, PermanentError } from '../model/errors.ts'
import type { Fault } from '../model/fault.ts'
import { show } from '../model/problems.ts'
import { isSound, redeemed, referenceOf } from './blob-reference.ts'

/** A blob store whose calls end in time, and whose failures are said as those of messages. */
export interface Blobs {
  /** Why it could not be put; undefined when it was. */
  put(
    queue: string,
    envelope: Envelope,
    name: string,
    signal: AbortSignal,
  ): Promise<Fault | undefined>
  /** Fetches the body of this reference once, however often it is called; a failure is tried again. */
  fetcher(queue: string, envelope: Envelope, signal: AbortSignal): () => Promise<FetchedBody>
  /** Never rejects: what stays is swept. */
  discard(names: readonly string[]): Promise<void>
}

/** Longer than any sound store takes for a body; one that hangs must not hold a worker for ever. */
const CALL_MAX_MS = 30_000

export function blobsOf(store: BlobStore, clock: Clock): Blobs {
  const never = new AbortController().signal
  const fetchBody = async (
    queue: string,
    envelope: Envelope,
    signal: AbortSignal,
  ): Promise<FetchedBody> => {
    const reference = referenceOf(envelope)
    if (reference === undefined) return { ok: true, envelope }
    const name = reference.name
    try {
      const body = isSound(reference)
        ? bytesOf(name, await within(clock, signal, (ends) => store.get(name, ends)))
        : undefined
      if (body !== undefined) return { ok: true, envelope: redeemed(envelope, body) }
      return { ok: false, retryable: false, error: missing(store, queue, envelope, name) }
    } catch (cause) {
      const what = `the body of message ${envelope.id} could not be fetched from`
      return { ok: false, retryable: true, error: away(store, queue, what, cause) }
    }
  }
  return {
    put: async (queue, envelope, name, signal) => {
      try {
        await within(clock, signal, (ends) => store.put(name, envelope.body, ends))
        return undefined
      } catch (error) {
        const what = `the body of message ${envelope.id} could not be put into`
        const cause = away(store, queue, `nothing was sent: ${what}`, error)
        return { code: 'unavailable', retryable: true, outcome: 'notApplied', cause }
      }
    },
    fetcher: (queue, envelope, signal) => {
      let fetching: Promise<FetchedBody> | undefined
      const fetched = async (): Promise<FetchedBody> => {
        const outcome = await fetchBody(queue, envelope, signal)
        if (!outcome.ok) fetching = undefined
        return outcome
      }
      return () => {
        fetching ??= fetched()
        return fetching
      }
    },
    discard: async (names) => {
      if (names.length === 0) return
      await within(clock, never, (ends) => store.remove(names, ends)).catch(() => undefined)
    },
  }
}

/** A store of the user's may give anything. It is not the message's fault, so the message waits until that is mended. */
function bytesOf(name: string, got: unknown): Uint8Array | undefined {
  if (got === undefined || got instanceof Uint8Array) return got
  throw new TypeError(
    `its get gave ${show(got)} for blob ${JSON.stringify(name)}, expected a Uint8Array, or undefined where there is none`,
  )
}

function missing(store: BlobStore, queue: string, { id }: Envelope, name: string): PermanentError {
  return new PermanentError(
    `queue "${queue}": the body of message ${id} is gone: there is no blob ${JSON.stringify(name.slice(0, 200))} in ${store.name}; ` +
      'it was removed, swept after claimCheck.keepMs, or is in another blob store',
  )
}

function away(store: BlobStore, queue: string, what: string, cause: unknown): MillraceError {
  return new MillraceError(
    'MILLRACE_UNAVAILABLE',
    `queue "${queue}": ${what} ${store.name} (${messageOfError(cause)}); try again`,
    { cause, retryable: true, fields: { queue } },
  )
}

/** Ends with the signal, or when it took too long, whether or not the store listens. */
function within<T>(
  clock: Clock,
  signal: AbortSignal,
  call: (ends: AbortSignal) => Promise<T>,
): Promise<T> {
  const ends = new AbortController()
  const { promise, resolve, reject } = Promise.withResolvers<T>()
  const stop = (): void => ends.abort(signal.reason)
  const cancel = clock.after(CALL_MAX_MS, () =>
    ends.abort(new Error(`no answer within ${CALL_MAX_MS} ms`)),
  )
  ends.signal.addEventListener('abort', () => reject(ends.signal.reason), { once: true })
  signal.addEventListener('abort', stop, { once: true })
  if (signal.aborted) stop()
  else call(ends.signal).then(resolve, reject)
  return promise.finally(() => {
    cancel()
    signal.removeEventListener('abort', stop)
  })
}
