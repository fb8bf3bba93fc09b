import type { Msg } from '@nats-io/transport-node'
import type { Ends } from '../../transport/ends.ts'
import type { Source } from './lane.ts'
import { nanos } from './nanos.ts'
import type { Store } from './store.ts'

/** One request for messages. */
export interface PullRequest {
  readonly source: Source
  readonly batch: number
  /** How long it may wait for the first one; 0 asks once, which no lane is: see `ask`. */
  readonly waitMs: number
  readonly ends: Ends
  /** What comes after the answer was given: the server had sent it before it heard that nobody waits. */
  readonly late: (msg: Msg) => void
  /** The first one has come; the answer is given when all have. */
  readonly onFirst?: () => void
}

/** How long an answer may take beyond what the server was told to wait. */
const GRACE_MS = 2_000

/**
 * `no_wait` together with `expires` is answered with all that is there, or with the first that comes. An inbox of its own
 * for each request: when nobody listens to it any more the server drops the request instead of spending a message on it.
 * @throws what the server says when the consumer is not there
 */
export function pull(store: Store, request: PullRequest): Promise<readonly Msg[]> {
  const { batch, waitMs, ends } = request
  const { nc, inbox } = store.client
  const subject = inbox()
  const { promise, resolve, reject } = Promise.withResolvers<readonly Msg[]>()
  const messages: Msg[] = []
  const abandoned: (() => void)[] = []
  let over = false
  let expected = batch
  const end = (answer: () => void, heard: boolean): void => {
    if (over) return
    over = true
    for (const run of abandoned) run()
    if (heard) subscription.unsubscribe()
    // Listens until the server has taken note; what it sent before that is not lost.
    else subscription.drain().catch(() => {})
    answer()
  }
  const subscription = nc.subscribe(subject, {
    callback(error, msg) {
      if (error !== null) return end(() => reject(error), true)
      const code = msg.headers?.code ?? 0
      if (isOnlyNews(msg)) return
      if (code > 0) {
        expected = handedOut(msg, batch)
        if (messages.length >= expected) end(() => statusEnd(msg, messages, resolve, reject), true)
        return
      }
      if (over) return request.late(msg)
      messages.push(msg)
      if (messages.length === 1) request.onFirst?.()
      if (messages.length >= expected) end(() => resolve(messages), true)
    },
  })
  const giveUp = (): void => end(() => resolve(messages), false)
  const signal = ends.signal()
  signal.addEventListener('abort', giveUp, { once: true })
  abandoned.push(
    () => signal.removeEventListener('abort', giveUp),
    // The request died with the connection or with the server.
    store.onReconnect(giveUp),
    // Servers before 2.10 say nothing at all when the consumer is not there.
    store.clock.after(waitMs + GRACE_MS, () =>
      end(
        () => (messages.length > 0 ? resolve(messages) : reject(new PullError(503, 'nothing'))),
        false,
      ),
    ),
  )
  if (signal.aborted) giveUp()
  else ask(store, subject, request)
  return promise
}

const IDLE_HEARTBEAT = 100

/** `Batch Completed` comes with `max_bytes`, and from a replicated consumer before the messages that it speaks of. */
function isOnlyNews({ headers }: Msg): boolean {
  return (
    headers?.code === IDLE_HEARTBEAT ||
    (headers?.code === 409 && headers.description === 'Batch Completed')
  )
}

/**
 * How many messages of the request are sent or on their way, because a replicated consumer sends them only when its followers
 * know of them, and a status may be faster. 0 where the status does not say.
 */
function handedOut({ headers }: Msg, batch: number): number {
  const left = headers?.get('Nats-Pending-Messages')
  return left === undefined || left === '' ? 0 : Math.max(0, batch - Number(left))
}

/** The server ends connections that have 64 MiB (its default) waiting to be read. */
const BYTES_MAX = 16 * 1024 * 1024

/**
 * Of a lane that another worker has a message of, `no_wait` gets no answer at all (2.15.2). A lane gives one message, so nothing is
 * lost by waiting for it.
 */
function ask(
  { client: { nc, api }, server }: Store,
  reply: string,
  { source, batch, waitMs }: Pick<PullRequest, 'source' | 'batch' | 'waitMs'>,
): void {
  const maxBytes = Math.max(BYTES_MAX, 2 * server.maxPayload)
  const wait = waitMs > 0 ? { expires: nanos(waitMs) } : {}
  const much = { batch, no_wait: true, max_bytes: maxBytes }
  const request = JSON.stringify({ ...(source.lane === undefined ? much : { batch: 1 }), ...wait })
  nc.publish(`${api}.CONSUMER.MSG.NEXT.${source.stream}.${source.consumer}`, request, { reply })
}

/** 404 and 408: nothing more. 503: nobody listens. 409: the consumer or its leader went, or too many wait. */
function statusEnd(
  msg: Msg,
  messages: readonly Msg[],
  resolve: (messages: readonly Msg[]) => void,
  reject: (error: Error) => void,
): void {
  const code = msg.headers?.code ?? 0
  const description = msg.headers?.description ?? ''
  if (messages.length > 0 || code === 404 || code === 408) resolve(messages)
  else reject(new PullError(code, description))
}

/** A status instead of messages. */
export class PullError extends Error {
  readonly status: number
  constructor(status: number, description: string) {
    super(`the server answered ${status} ${description} to a request for messages`)
    this.name = 'PullError'
    this.status = status
  }
}

/** Answered while a consumer or its server comes and goes: the next request may be served. */
const PASSING = /consumer deleted|leadership change|server shutdown/i

/** The consumer may be gone, or only its leader. Other statuses say that the request itself cannot be served. */
export function isPassing(error: unknown): boolean {
  return error instanceof PullError && (error.status === 503 || PASSING.test(error.message))
}
