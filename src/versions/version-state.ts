import type { MaybePromise } from '../model/maybe-promise.ts'

/** What versions count for, within one queue. `key` as the tables keep it. */
export interface Entity {
  readonly queue: string
  readonly key: string
}

/** A payload that waits for those before it. */
export interface Waiting {
  readonly version: bigint
  /** JSON. */
  readonly payload: string
  /** Epoch ms. */
  readonly sentAt: number
}

/** A key whose next version has not come, while later ones wait. */
export interface Gap {
  /** As the key function gave it; one that is longer than 255 characters or not plain ASCII as its SHA-256. */
  readonly key: string
  /** The version that is missing. */
  readonly next: bigint
  /** How many later ones wait, and the lowest of them. */
  readonly waiting: number
  readonly lowest: bigint
  /** When the oldest of them was sent, epoch ms. */
  readonly sentAt: number
}

/** What is kept of versions, seen from within one transaction of the user's. Answers at once on SQLite. */
export interface VersionState {
  /** True when this version is newer than every one before; it is then the newest. */
  applyNewer(entity: Entity, version: bigint): MaybePromise<boolean>
  /** The version that comes next, `first` for a new key. The key is locked until the transaction ends. */
  lockNext(entity: Entity, first: bigint): MaybePromise<bigint>
  setNext(entity: Entity, next: bigint): MaybePromise<void>
  /** Keeps one of each version; false when `max` wait already. */
  keep(entity: Entity, waiting: Waiting, max: number): MaybePromise<boolean>
  /** Payloads that wait from `version` on, without a gap between them. */
  due(entity: Entity, version: bigint): MaybePromise<readonly string[]>
  forgetBelow(entity: Entity, version: bigint): MaybePromise<void>
  lowest(entity: Entity): MaybePromise<bigint | undefined>
  gaps(queue: string, limit: number): MaybePromise<readonly Gap[]>
}
