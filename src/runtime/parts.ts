import type { Inbox } from '../inbox/inbox.ts'
import { type Ability, abilitiesOfApp } from '../layers/abilities.ts'
import { type BlobSweep, blobSweep } from '../layers/blob-sweep.ts'
import { claimCheck as claimCheckOn } from '../layers/claim-check.ts'
import { choiceNeeds, layered, storeNeeds } from '../layers/layered.ts'
import { watchedStore } from '../layers/watched-store.ts'
import { messageOfError } from '../model/describe-error.ts'
import type { Logger } from '../model/logger.ts'
import { read } from '../model/probe.ts'
import { backoffCeilingMs } from '../model/retry.ts'
import type { Outbox } from '../outbox/outbox.ts'
import type { Store } from '../store/store.ts'
import type { QueueSpec, Transport } from '../transport/transport.ts'
import { capacityRefusals } from './capacity-refusals.ts'
import type { ResolvedClaimCheck } from './claim-check-choice.ts'
import type { MillraceOptions } from './create.ts'
import { horizonMsOf, neededInboxTtlMs } from './horizon.ts'
import { mostLevels } from './levels-of.ts'
import type { ResolvedOptions } from './millrace-options.ts'
import { answered, type Opening, openingOf } from './opening.ts'
import { orderRefusals } from './order-refusals.ts'
import { storeOf } from './own-store.ts'
import type { AnyQueue } from './queue.ts'
import { turnRefusals } from './turn-refusals.ts'

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

/**
 * Opens store, transport, inbox and outbox, and makes the queues. What was opened is closed when a later part fails. Where
 * something is refused (`found`: of the options) the parts behind it are only looked at, so that all refusals come at once.
 */
export async function openParts<Tx>(
  options: MillraceOptions<Tx>,
  resolved: ResolvedOptions,
  found: readonly string[],
): Promise<Parts<Tx>> {
  const opening = openingOf(resolved, found)
  const { open, refused } = opening
  try {
    const chosen = storeOf(options)
    const kept = await open('store', chosen, (store, context) => store.connect(context))
    const store = kept && watchedStore(kept, resolved.clock)
    const backend = await open('transport', options.transport, (transport, context) =>
      transport.connect(context),
    )
    const hasStore = chosen !== undefined
    const on = backend && (await onBackend(backend, { ...opening, resolved, store, hasStore }))
    const neededTtlMs = neededInboxTtlMs(resolved)
    const inbox = await open('inbox', options.inbox, (one, context) =>
      one.connect({ ...context, neededTtlMs }),
    )
    const outbox = await open('outbox', options.outbox, (one, context) => one.connect(context))
    refused.throwIfAny()
    if (on === undefined) throw new Error('a transport that did not open was not refused')
    return { store, inbox, outbox, ...on }
  } catch (error) {
    await opening.closeAll()
    throw error
  } finally {
    opening.over()
  }
}

interface OnBackend extends Opening {
  readonly resolved: ResolvedOptions
  readonly store: Store | undefined
  /** Also where it was refused. */
  readonly hasStore: boolean
}

/** The layers over an open backend, and its queues. */
async function onBackend(
  backend: Transport,
  { resolved, store, hasStore, refused, signal, keep }: OnBackend,
): Promise<Pick<Parts<unknown>, 'transport' | 'claimCheck' | 'blobs' | 'abilities'>> {
  const { name } = backend
  const where = `transport ${name}`
  refused.add(lacking(backend, hasStore))
  const below = layered(backend, { ...resolved, store, levels: mostLevels(resolved.queues) })
  const claimCheck = resolved.claimCheck && limited(resolved.claimCheck, below)
  const transport = keep(checked(below, claimCheck, resolved))
  refused.add(orderRefusals(transport, resolved.queues))
  refused.add(capacityRefusals(transport, resolved.queues))
  refused.add(turnRefusals({ transport, backend }, resolved.queues))
  const specs = resolved.queues.map(specOf)
  const { topology } = transport
  if (refused.any()) {
    const look = async (): Promise<readonly string[]> =>
      (await topology.differences?.(specs, signal)) ?? []
    const differences = await refused.of(where, () => answered(name, look()))
    refused.add((differences ?? []).map((one) => `${where}: ${one}`))
  } else await refused.of(where, () => answered(name, topology.ensure(specs, signal)))
  const blobs = claimCheck && blobSweep({ ...claimCheck, clock: resolved.clock })
  if (blobs !== undefined) await refused.of('claimCheck', () => reached(blobs, resolved.logger))
  const hasOrder = resolved.queues.some(({ order }) => order !== undefined)
  return { transport, claimCheck, blobs, abilities: abilitiesOfApp(backend, hasOrder) }
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
    await answered(blobs.name, blobs.reach())
  } catch (cause) {
    if (read(cause, 'retryable') !== true) throw cause
    logger.warn(`${messageOfError(cause)}; going on without it`, { cause })
  }
}

/** What is missing is said before the first message is sent, not when the first one dies. */
function lacking(backend: Transport, hasStore: boolean): readonly string[] {
  const needs = hasStore ? [] : storeNeeds(backend)
  const missing = choiceNeeds(backend)
  if (needs.length === 0) return missing
  return [
    ...missing,
    `store: ${backend.name} cannot keep ${needs.join(' and ')} by itself; give store: postgresStore({ url }), redisStore({ url }), sqliteStore({ file }) or memoryStore() of millrace/store`,
  ]
}

function specOf(queue: AnyQueue): QueueSpec {
  const { name, owner, capacity, retry, handlerTimeoutMs } = queue
  const maxDepth = capacity === 'unbounded' ? undefined : capacity.maxDepth
  const horizonMs = horizonMsOf(queue)
  const onDead = queue.order?.onDead ?? 'continue'
  const ordered = queue.order === undefined ? {} : ({ ordered: true } as const)
  const spec = { name, owner, maxDepth, horizonMs, handlerTimeoutMs, onDead, ...ordered }
  return {
    ...{ ...spec, attempts: retry.attempts },
    retryWaitMs: backoffCeilingMs(retry.attempts - 1, retry),
    ...(queue.ageingMs === undefined ? {} : { ageingMs: queue.ageingMs }),
    ...(queue.priorities === undefined ? {} : { priorities: queue.priorities }),
  }
}
