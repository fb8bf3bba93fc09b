import type { BlobStore } from '../blobs/blob-store.ts'
import { read } from '../model/probe.ts'
import { type Problems, show } from '../model/problems.ts'
import { neededInboxTtlMs } from './horizon.ts'
import type { AnyQueue } from './queue.ts'

/** What goes to a blob store, to which, and for how long. */
export interface ClaimCheckChoice {
  /** `fileBlobs({ folder })` of millrace/blobs, or one of your own. Every process of the app needs the same one. */
  readonly blobs: BlobStore
  /** A payload of more bytes than this goes to the blobs. Default 65,536; what the transport takes is a limit for it too. */
  readonly aboveBytes?: number
  /**
   * How long after its message became ready a blob is kept, in ms. Default 2,592,000,000 (30 days), or what the queues need if that is more;
   * refused below the longest retry horizon and `redriveWindowMs` together. A message that waits longer finds its body gone.
   */
  readonly keepMs?: number
}

/** With every default filled in. */
export type ResolvedClaimCheck = Required<ClaimCheckChoice>

const DAY_MS = 86_400_000
const KEEP_MS = 30 * DAY_MS
const KEEP_MAX_MS = 3_650 * DAY_MS
const ABOVE_BYTES = 65_536
const CALLS = ['put', 'get', 'remove', 'list'] as const

export function resolveClaimCheck(
  options: { readonly claimCheck?: ClaimCheckChoice; readonly queues: readonly AnyQueue[] },
  redriveWindowMs: number,
  found: Problems,
): ResolvedClaimCheck | undefined {
  const { claimCheck: given } = options
  if (given === undefined) return undefined
  if (typeof given !== 'object' || given === null) {
    found.add(`claimCheck: expected { blobs: fileBlobs({ folder }) }, got ${show(given)}`)
    return undefined
  }
  found.knownKeys(given, KEYS, 'claimCheck')
  const blobs: unknown = given.blobs
  const missing = CALLS.filter((call) => typeof read(blobs, call) !== 'function')
  if (missing.length > 0 || typeof read(blobs, 'maxBytes') !== 'number') {
    found.add(`claimCheck.blobs: expected what fileBlobs(…) gives, got ${show(blobs)}`)
  }
  const aboveBytes = found.number('claimCheck.aboveBytes', given.aboveBytes, {
    min: 0,
    max: Number.MAX_SAFE_INTEGER,
    default: ABOVE_BYTES,
  })
  const keepMs = found.number('claimCheck.keepMs', given.keepMs, {
    min: 1,
    max: KEEP_MAX_MS,
    default: KEEP_MS,
  })
  const neededMs = neededOf(options.queues, redriveWindowMs)
  if (given.keepMs !== undefined && keepMs < neededMs) {
    found.add(
      `claimCheck.keepMs: the queues need ${neededMs} ms (${(neededMs / DAY_MS).toFixed(1)} days: the longest retry horizon and redriveWindowMs), got ${keepMs}; raise it, or leave it out`,
    )
  }
  return { blobs: given.blobs, aboveBytes, keepMs: Math.max(keepMs, neededMs) }
}

const KEYS: readonly string[] = ['blobs', 'aboveBytes', 'keepMs']

/** Queues that are none are a problem of their own, found beside this one. */
function neededOf(queues: readonly AnyQueue[], redriveWindowMs: number): number {
  try {
    return Math.ceil(neededInboxTtlMs({ queues, redriveWindowMs }))
  } catch {
    return 0
  }
}
