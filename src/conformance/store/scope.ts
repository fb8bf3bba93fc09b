import type { DeadLetter } from '../../model/dead-letter.ts'
import type { Envelope, RememberedKey } from '../../model/envelope.ts'
import { freshHistory } from '../../model/history.ts'
import type { KeyedMessage } from '../../store/key-memory.ts'
import type { Store, StoreTraits } from '../../store/store.ts'
import type { Family } from '../promise.ts'
import type { Depth } from '../scope.ts'
import { type Timing, timing } from '../timing.ts'
import type { StoreHarness } from './harness.ts'

/** What one test of a store works with. Everything that it opens is closed when the test ends. */
export interface StoreScope extends Timing {
  readonly harness: StoreHarness
  readonly traits: StoreTraits
  readonly depth: Depth
  /** The first connection. */
  readonly near: Store
  /** The second connection: what `near` did is asserted here. */
  readonly far: Store
  connect(): Promise<Store>
  /** A name that nobody used before: of a queue, a lease, a bucket. */
  fresh(): string
  /** An envelope with an id of its own; the body names it. */
  message(fields?: Partial<Envelope>): Envelope
  letter(queue: string, fields?: Partial<Letter>): Letter
  /** 0 <= n < 1, from a seed that is printed when the test fails. */
  readonly random: () => number
}

export type Letter = Omit<DeadLetter, 'deadAt'>

/** What the kit knows of a store before the first test. */
export interface StoreSubject {
  readonly traits: StoreTraits
  readonly store: Store
  readonly harness: StoreHarness
}

export type StoreFamily = Family<StoreScope, StoreSubject>

export interface StoreScopeOptions {
  readonly harness: StoreHarness
  readonly depth: Depth
  readonly random: () => number
}

let made = 0

/** Runs `body` with a scope and closes what was opened, whatever happens. */
export async function withStoreScope(
  options: StoreScopeOptions,
  body: (scope: StoreScope) => Promise<void>,
): Promise<void> {
  const { harness, random } = options
  const opened: Store[] = []
  const connect = async (): Promise<Store> => {
    const store = await harness.connect()
    opened.push(store)
    return store
  }
  const fresh = (): string => {
    made += 1
    return `n-${made.toString(36)}-${Math.floor(random() * 2 ** 40).toString(36)}`
  }
  const message = (fields?: Partial<Envelope>): Envelope => envelope(fresh(), fields)
  try {
    const near = await connect()
    const far = await connect()
    await body({
      ...options,
      ...timing(harness),
      traits: near.traits,
      near,
      far,
      connect,
      fresh,
      message,
      letter: (queue, fields) => ({ ...letterOf(queue, message()), ...fields }),
    })
  } finally {
    for (const store of opened.reverse()) await store.close()
  }
}

function envelope(id: string, fields: Partial<Envelope> = {}): Envelope {
  const body = new TextEncoder().encode(`{"n":"${id}"}`)
  return { id, body, headers: {}, priority: 0, ...fields }
}

function letterOf(queue: string, envelope: Envelope): Letter {
  return {
    envelope,
    queue,
    owner: 'team-conformance',
    errorClass: 'permanent',
    reason: 'the receiver said no',
    history: freshHistory,
    sentAt: 1_767_225_600_000,
  }
}

const HOUR_MS = 3_600_000

export function keyed(key: string, fields: Partial<RememberedKey> = {}): RememberedKey {
  return { kind: 'idempotency', key, fingerprint: 'same', windowMs: HOUR_MS, ...fields }
}

export function holding(id: string, ...keys: readonly RememberedKey[]): KeyedMessage {
  return { id, keys }
}
