import { problems } from '../../model/problems.ts'
import { ADDRESS_KEYS, checkAddress, checkPrefix, type RedisAddress } from '../../redis/address.ts'
import { redisFault } from '../../redis/fault.ts'
import { openWire } from '../../redis/open-wire.ts'
import { judgeServer, readFacts } from '../../redis/server.ts'
import type { Store, StoreConnector } from '../../store/store.ts'
import type { ConnectContext } from '../../transport/transport.ts'
import { guardedStore, type StoreParts } from '../guarded-store.ts'
import { type Database, openDatabase } from './database.ts'
import { redisDelayed } from './delayed.ts'
import { redisJournal } from './journal.ts'
import { redisKeys } from './keys.ts'
import { redisLeases } from './leases.ts'
import { redisBuckets, redisCounters } from './numbers.ts'
import { redisShelf } from './shelf.ts'
import { redisSlots } from './slots.ts'
import { redisStates } from './states.ts'

export type RedisStoreOptions = RedisStoreSettings & RedisAddress

export interface RedisStoreSettings {
  /** Begins every key of ours; 1 to 64 letters, digits, `_`, `.`, `:` or `-`. Default `millrace`. */
  readonly prefix?: string
  /** How long a call may take, connecting included, in ms; 100 to 600,000. Default 10,000. */
  readonly timeoutMs?: number
}

/**
 * A store in Redis 6.2 or newer or Valkey. What ends is removed by Redis itself.
 *
 * @example
 * const app = await createMillrace({ transport, store: redisStore({ url: 'redis://localhost:6379' }), queues })
 * @throws MILLRACE_INVALID_OPTIONS
 */
export function redisStore(options: RedisStoreOptions): StoreConnector {
  const found = problems('redisStore')
  found.knownKeys(options, [...ADDRESS_KEYS, 'prefix', 'timeoutMs'])
  checkAddress(found, options)
  const { prefix = 'millrace' } = options
  checkPrefix(found, 'prefix', prefix)
  const timeoutMs = found.number('timeoutMs', options.timeoutMs, TIMEOUT)
  found.throwIfAny()
  const resolved = { address: options, prefix, timeoutMs }
  return { name: NAME, connect: (context) => connect(resolved, context) }
}

const NAME = 'redis'
const TIMEOUT = { min: 100, max: 600_000, default: 10_000, integer: false } as const

interface Resolved {
  readonly address: RedisAddress
  readonly prefix: string
  readonly timeoutMs: number
}

async function connect(options: Resolved, context: ConnectContext): Promise<Store> {
  const { clock, signal, logger } = context
  signal.throwIfAborted()
  const wire = await openWire(options, context)
  try {
    signal.throwIfAborted()
    const parts = { wire, clock, timeoutMs: options.timeoutMs }
    const durable = judgeServer(await readFacts(parts), wire.finds, logger)
    return guardedStore({
      name: NAME,
      clock: 'server',
      durability: durable ? 'disk' : 'process',
      ends: 'by itself',
      parts: partsOf(openDatabase(parts, options.prefix)),
      diagnose: redisFault,
      end: async () => wire.close(),
    })
  } catch (error) {
    wire.close()
    throw error
  }
}

function partsOf(database: Database): StoreParts {
  return {
    keys: redisKeys(database),
    delayed: redisDelayed(database),
    shelf: redisShelf(database),
    journal: redisJournal(database),
    leases: redisLeases(database),
    slots: redisSlots(database),
    buckets: redisBuckets(database),
    counters: redisCounters(database),
    states: redisStates(database),
    prune: async () => 0,
  }
}
