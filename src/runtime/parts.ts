import type { Inbox } from '../inbox/inbox.ts'
import { type Ability, abilitiesOf } from '../layers/abilities.ts'
import { type BlobSweep, blobSweep } from '../layers/blob-sweep.ts'
import { claimCheck as claimCheckOn } from '../layers/claim-check.ts'
import { choiceNeeds, layered, storeNeeds } from '../layers/layered.ts'
import { watchedStore } from '../layers/watched-store.ts'
import { classifyError } from '../model/classify-error.ts'
import { messageOfError } from '../model/describe-error.ts'
import { isMillraceError, MillraceError, OptionsError } from '../model/errors.ts'
import type { Logger } from '../model/logger.ts'
import { read } from '../model/probe.ts'
import { tlsRefusal } from '../model/tls-refusal.ts'
import type { Outbox } from '../outbox/outbox.ts'
import { pgRefusal } from '../sql/pg-refusal.ts'
import type { Store } from '../store/store.ts'
import type { QueueSpec, Transport } from '../transport/transport.ts'
import type { ResolvedClaimCheck } from './claim-check-choice.ts'
import type { MillraceOptions } from './create.ts'
import { horizonMsOf, neededInboxTtlMs } from './horizon.ts'
import type { ResolvedOptions } from './millrace-options.ts'
import { refuseUnordered } from './order-refusals.ts'
import type { AnyQueue } from './queue.ts'

/** The live connections of an app. */
export interface Parts<Tx> {
  readonly store: Store | undefined
  /** Who brings what the app needs; of the backend below all layers. */
  readonly abilities: readonly Ability[]
  readonly transport: Transport
  readonly inbox: Inbox<Tx> | undefined
  readonly outbox: Outbox | undefined
  readonly claimCheck: ResolvedClaimCheck | undefined
  /** Present with a claim check. */
  readonly blobs: BlobSweep | undefined
}

const CONNECT_MAX_MS = 30_000

/** Opens store, transport, inbox and outbox, and makes the queues. What was opened is closed when a later part fails. */
export async function openParts<Tx>(
  options: MillraceOptions<Tx>,
  resolved: ResolvedOptions,
): Promise<Parts<Tx>> {
  const limit = new AbortController()
  const cancel = resolved.clock.after(CONNECT_MAX_MS, () =>
    limit.abort(
      new MillraceError(
        'MILLRACE_UNAVAILABLE',
        `no connection within ${CONNECT_MAX_MS} ms; is the backend up?`,
        {
          retryable: true,
        },
      ),
    ),
  )
  const opened: { close(): Promise<void> }[] = []
  const keep = <P extends { close(): Promise<void> }>(part: P): P => {
    opened.push(part)
    return part
  }
  const context = { ...resolved, signal: limit.signal }
  try {
    const store =
      options.store &&
      watchedStore(
        keep(await opening(options.store.name, options.store.connect(context))),
        resolved.clock,
      )
    const { transport: connector } = options
    const backend = keep(await opening(connector.name, connector.connect(context)))
    refuseWithout(backend, store)
    const below = layered(backend, { ...resolved, store })
    const claimCheck = resolved.claimCheck && limited(resolved.claimCheck, below)
    const transport = keep(checked(below, claimCheck, resolved))
    refuseUnordered(transport, resolved.queues)
    const ensured = transport.topology.ensure(resolved.queues.map(specOf), limit.signal)
    await opening(connector.name, ensured)
    const needed = { ...context, neededTtlMs: neededInboxTtlMs(resolved) }
    const inbox =
      options.inbox && keep(await opening(options.inbox.name, options.inbox.connect(needed)))
    const outbox =
      options.outbox && keep(await opening(options.outbox.name, options.outbox.connect(context)))
    const blobs = claimCheck && blobSweep({ ...claimCheck, clock: resolved.clock })
    if (blobs !== undefined) await reached(blobs, resolved.logger)
    const abilities = abilitiesOf(backend)
    return { store, transport, inbox, outbox, claimCheck, blobs, abilities }
  } catch (error) {
    for (const part of opened.reverse()) await part.close().catch(() => undefined)
    throw error
  } finally {
    cancel()
  }
}

/** What the transport does not take goes to the blobs, too. */
function limited(choice: ResolvedClaimCheck, { traits }: Transport): ResolvedClaimCheck {
  return { ...choice, aboveBytes: Math.min(choice.aboveBytes, traits.limits.bodyBytes) }
}

/** Outermost: what the layers copy, keep aside or bury is the reference. */
function checked(
  transport: Transport,
  choice: ResolvedClaimCheck | undefined,
  { clock, random }: ResolvedOptions,
): Transport {
  return choice === undefined ? transport : claimCheckOn(transport, { clock, random, ...choice })
}

/** A blob store that is only away stops no app: small payloads do without it. */
async function reached(blobs: BlobSweep, logger: Logger): Promise<void> {
  try {
    await opening(blobs.name, blobs.reach())
  } catch (cause) {
    if (read(cause, 'retryable') !== true) throw cause
    logger.warn(`${messageOfError(cause)}; going on without it`, { cause })
  }
}

/** What is missing is said before the first message is sent, not when the first one dies; all of it at once. */
function refuseWithout(backend: Transport, store: Store | undefined): void {
  const needs = store === undefined ? storeNeeds(backend) : []
  const missing = [...choiceNeeds(backend)]
  if (needs.length > 0) {
    missing.push(
      `store: ${backend.name} cannot keep ${needs.join(' and ')} by itself; give store: postgresStore({ url }), redisStore({ url }), sqliteStore({ file }) or memoryStore() of millrace/store`,
    )
  }
  if (missing.length > 0) throw new OptionsError('createMillrace', missing)
}

/** Times inside the error do not matter here: nothing waits for them. */
const NO_TIME = 0

/** What a client throws when it cannot connect says little; a user needs to know what could not be opened. */
async function opening<T>(name: string, opened: Promise<T>): Promise<T> {
  try {
    return await opened
  } catch (cause) {
    const insecure = tlsRefusal(cause, name)
    if (insecure !== undefined) throw insecure
    if (isMillraceError(cause)) throw cause
    const refusal = pgRefusal(cause, name)
    if (refusal !== undefined) throw refusal
    const { code, errorClass } = classifyError(cause, undefined, NO_TIME)
    const why = cause instanceof Error && cause.message !== '' ? `${code}: ${cause.message}` : code
    throw new MillraceError(
      'MILLRACE_UNAVAILABLE',
      `${name} cannot be opened (${why}); check that it runs and that address and account are right`,
      { cause, retryable: errorClass !== 'permanent' },
    )
  }
}

function specOf(queue: AnyQueue): QueueSpec {
  const { name, owner, capacity, retry, handlerTimeoutMs } = queue
  const maxDepth = capacity === 'unbounded' ? undefined : capacity.maxDepth
  const horizonMs = horizonMsOf(queue)
  const onDead = queue.order?.onDead ?? 'continue'
  return { name, owner, maxDepth, attempts: retry.attempts, horizonMs, handlerTimeoutMs, onDead }
}
