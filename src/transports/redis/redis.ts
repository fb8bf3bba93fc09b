import { closedError } from '../../model/closed-error.ts'
import { addressOf } from '../../redis/address.ts'
import { openWire } from '../../redis/open-wire.ts'
import { judgeServer, readFacts, toldFacts } from '../../redis/server.ts'
import type { Wire } from '../../redis/wire.ts'
import type { StoringConnector } from '../../store/store.ts'
import { redisStore } from '../../stores/redis/redis-store.ts'
import { openBell } from '../../transport/bell.ts'
import type { ConnectContext, Transport } from '../../transport/transport.ts'
import { deafEar, openEar } from './ear.ts'
import { type RedisOptions, type Resolved, resolveOptions } from './options.ts'
import type { Store } from './store.ts'
import { redisTraits } from './traits.ts'
import { redisTransport } from './transport.ts'

export type { RedisAddress } from '../../redis/address.ts'
export type { RedisNames } from './names.ts'
export type { RedisOptions, RedisSettings } from './options.ts'

/**
 * Queues in Redis 6.2 or newer or Valkey, shared by any number of processes: a stream with one consumer group for each.
 *
 * @example
 * const app = await createMillrace({ transport: redis({ url: 'redis://localhost:6379' }), queues: [deliveries] })
 * @throws MILLRACE_INVALID_OPTIONS
 */
export function redis(options: RedisOptions): StoringConnector {
  const resolved = resolveOptions(options)
  return {
    name: 'redis',
    connect: (context) => connect(resolved, context),
    ownStore: () => {
      const { address, naming, timeoutMs } = resolved
      return redisStore({ ...addressOf(address), prefix: naming.prefix, timeoutMs })
    },
  }
}

async function connect(options: Resolved, context: ConnectContext): Promise<Transport> {
  const { clock, signal, logger } = context
  signal.throwIfAborted()
  const wire = await openWire(options, context)
  try {
    signal.throwIfAborted()
    const facts = await readFacts({ wire, clock, timeoutMs: options.timeoutMs })
    const durable = judgeServer(facts, wire.finds, logger)
    const { store, end } = openStore(wire, options, context, durable)
    return redisTransport({ store, facts: toldFacts(facts), end })
  } catch (error) {
    wire.close()
    throw error
  }
}

interface Opened {
  readonly store: Store
  readonly end: () => void
}

function openStore(
  wire: Wire,
  { naming, topology, listen, pollMs, timeoutMs }: Resolved,
  { clock, random, logger }: ConnectContext,
  durable: boolean,
): Opened {
  const closing = new AbortController()
  const bell = openBell<string>(clock)
  const ear = listen ? openEar({ wire, clock, logger }) : deafEar
  const owner = Math.floor(random() * 2 ** 48).toString(36)
  let claims = 0
  const store: Store = {
    wire,
    traits: redisTraits(durable),
    naming,
    topology,
    clock,
    logger,
    timeoutMs,
    pollMs,
    bell,
    ear,
    newClaim() {
      claims += 1
      return `${owner}-${claims.toString(36)}`
    },
    closing: closing.signal,
    queues: new Map(),
  }
  const end = (): void => {
    closing.abort(closedError('the transport'))
    ear.close()
    bell.close()
    wire.close()
  }
  return { store, end }
}
