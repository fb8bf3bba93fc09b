import { type Clock, pause } from '../model/clock.ts'
import { OptionsError } from '../model/errors.ts'
import type { Inbox, InboxConnector, InboxKey, InboxOutcome, InboxWork } from './inbox.ts'

/** What a memory inbox needs of `memory()` so that effect and ack commit together. */
export interface MemoryDatabase {
  readonly databaseId: string
  begin(): MemoryTx
}

/**
 * What an effect receives from an inbox that shares the transport's memory. Pass it on as `tx` when
 * you send.
 */
export interface MemoryTx {
  commit(): void
  rollback(): void
}

export interface MemoryInboxOptions<Tx> {
  /**
   * What every effect receives: a fake database, a recorder. It is not rolled back. Default:
   * undefined.
   */
  readonly tx?: Tx
  /** How long a key is remembered, in ms. Default: as long as the queues need. */
  readonly ttlMs?: number
}

export interface SharedInboxOptions {
  /** The transport of the app: effect, key and ack commit together. */
  readonly transport: MemoryDatabase
  readonly ttlMs?: number
}

let made = 0

/**
 * Remembers handled keys in the memory of this process, for tests.
 *
 * @example
 * const rows: string[] = []
 * const app = await testApp({ queues: [orders], inbox: memoryInbox({ tx: rows }) })
 */
export function memoryInbox(options: SharedInboxOptions): InboxConnector<MemoryTx>
export function memoryInbox<Tx = undefined>(options?: MemoryInboxOptions<Tx>): InboxConnector<Tx>
export function memoryInbox(
  options: SharedInboxOptions | MemoryInboxOptions<unknown> = {},
): InboxConnector<unknown> {
  made += 1
  const keys = new Map<string, number>()
  const source: Source =
    'transport' in options
      ? { databaseId: options.transport.databaseId, begin: () => shared(options.transport) }
      : { databaseId: `memory-inbox-${made}`, begin: () => given(options.tx) }
  return {
    name: 'memory',
    async connect({ clock, neededTtlMs }) {
      const ttlMs = options.ttlMs ?? neededTtlMs
      if (ttlMs < neededTtlMs) {
        throw new OptionsError('memoryInbox', [
          `ttlMs: expected at least ${neededTtlMs} (how late a duplicate can be), got ${ttlMs}`,
        ])
      }
      return inbox(source, keys, clock, ttlMs)
    },
  }
}

interface Source {
  readonly databaseId: string
  readonly begin: () => Session
}

interface Session extends MemoryTx {
  readonly tx: unknown
}

function shared(database: MemoryDatabase): Session {
  const tx = database.begin()
  return { tx, commit: () => tx.commit(), rollback: () => tx.rollback() }
}

function given(tx: unknown): Session {
  return { tx, commit() {}, rollback() {} }
}

function inbox(
  source: Source,
  keys: Map<string, number>,
  clock: Clock,
  ttlMs: number,
): Inbox<unknown> {
  const open = new Map<string, Promise<unknown>>()
  const known = (key: string): boolean => (keys.get(key) ?? 0) > clock.now()
  const remember = (key: string): void => void keys.set(key, clock.now() + ttlMs)

  /** As a unique index does it: the second run of a key waits for the end of the first. */
  const inTurn = async <T>(key: string, leaseMs: number, run: () => Promise<InboxOutcome<T>>) => {
    const endAt = clock.now() + leaseMs
    for (let other = open.get(key); other; other = open.get(key)) {
      if (clock.now() >= endAt) return { kind: 'lost' } as const
      await untilOneEnds(other, clock, endAt - clock.now())
    }
    const mine = run()
    open.set(
      key,
      mine.catch(() => {}),
    )
    return mine.finally(() => open.delete(key))
  }

  return {
    name: 'memory',
    databaseId: source.databaseId,
    ttlMs,
    effects: 'async',
    seen: async (asked) => asked.map((key) => known(nameOf(key))),
    run: (key, work) =>
      inTurn(nameOf(key), work.leaseMs, () =>
        runOnce(source.begin, work, {
          known: () => known(nameOf(key)),
          remember: () => remember(nameOf(key)),
        }),
      ),
    async record(handled) {
      for (const key of handled) remember(nameOf(key))
    },
    async prune(max) {
      let pruned = 0
      for (const [key, endsAt] of keys) {
        if (pruned >= max) break
        if (endsAt > clock.now()) continue
        keys.delete(key)
        pruned += 1
      }
      return pruned
    },
    async close() {},
  }
}

interface KeyRecord {
  readonly known: () => boolean
  readonly remember: () => void
}

async function runOnce<T>(
  begin: () => Session,
  work: InboxWork<unknown, T>,
  key: KeyRecord,
): Promise<InboxOutcome<T>> {
  if (work.isOver?.()) return { kind: 'lost' }
  if (key.known()) return { kind: 'duplicate' }
  const session = begin()
  try {
    const value = await work.effect(session.tx)
    if (!(await work.last(session.tx))) {
      session.rollback()
      return { kind: 'lost' }
    }
    session.commit()
    key.remember()
    return { kind: 'committed', value }
  } catch (error) {
    session.rollback()
    throw error
  }
}

async function untilOneEnds(other: Promise<unknown>, clock: Clock, ms: number): Promise<void> {
  const late = new AbortController()
  await Promise.race([other, pause(clock, ms, late.signal)])
  late.abort()
}

function nameOf({ queue, key }: InboxKey): string {
  return `${queue}\n${key}`
}
