/**
 * Where the bodies lie that are too large for a queue. Names are made by the claim check: 1 to 200 of the characters
 * `A-Z a-z 0-9 . _ -`, the first one no dot, and one that was made for a later moment sorts after one for an earlier moment.
 * Whatever fails is an error that is thrown: the caller tries again.
 */
export interface BlobStore {
  /** For messages of errors. */
  readonly name: string
  /** The largest body that it takes. */
  readonly maxBytes: number
  /** Kept for good, whole, when it resolves; after a crash before that, it is there whole or not at all. */
  put(name: string, body: Uint8Array, signal: AbortSignal): Promise<void>
  /** Undefined when there is none of this name. */
  get(name: string, signal: AbortSignal): Promise<Uint8Array | undefined>
  /** What is not there counts as removed. */
  remove(names: readonly string[], signal: AbortSignal): Promise<void>
  /** The first names in their order (that of their characters' codes), of those that sort before `before`. */
  list(options: BlobListOptions, signal: AbortSignal): Promise<readonly string[]>
}

export interface BlobListOptions {
  readonly before: string
  readonly max: number
}

/** 64 MiB: a body is in memory whole, once for every message that is in flight. */
export const BLOB_MAX_BYTES = 67_108_864

const NAME = /^[\w-][\w.-]{0,199}$/

/** Whether it can be a name at all; one that comes from a message may be anything. */
export function isBlobName(name: string): boolean {
  return NAME.test(name)
}
