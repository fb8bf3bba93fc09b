import { closedError } from '../../model/closed-error.ts'
import { OptionsError } from '../../model/errors.ts'
import type { ConnectContext, Connector, Transport } from '../../transport/transport.ts'
import { type Client, type NatsAddress, openClient } from './client.ts'
import { watchConnection } from './connection.ts'
import { type NatsSettings, type Resolved, resolve } from './options.ts'
import { natsRefusal } from './refusal.ts'
import { abilitiesOf, serverProblem } from './server.ts'
import { openServerClock } from './server-clock.ts'
import type { Store } from './store.ts'
import { openStreamAge } from './stream-age.ts'
import { natsTraits } from './traits.ts'
import { natsTransport } from './transport.ts'

export type NatsOptions = NatsSettings & NatsAddress

/**
 * Queues in NATS JetStream, version 2.9 or newer; delays by the server from 2.12 on.
 *
 * @example
 * const app = await createMillrace({ transport: nats({ servers: 'nats://localhost:4222' }), queues: [deliveries] })
 * @throws MILLRACE_INVALID_OPTIONS
 */
export function nats(options: NatsOptions): Connector {
  const resolved = resolve(options)
  return { name: 'nats', connect: (context) => connect(resolved, context) }
}

async function connect(options: Resolved, context: ConnectContext): Promise<Transport> {
  const { clock, signal } = context
  const { address, timeoutMs, inboxPrefix, domain } = options
  signal.throwIfAborted()
  const opening = openClient(address, { clock, signal, timeoutMs, inboxPrefix, domain })
  const client = await opening.catch((error: unknown) => {
    throw natsRefusal(error, address) ?? error
  })
  try {
    const problem = serverProblem(client.nc)
    if (problem !== undefined) throw new OptionsError('nats', [problem])
    // Rejects at once where JetStream is switched off for the account.
    await client.manager.getAccountInfo()
    return open(client, options, context)
  } catch (error) {
    await client.end()
    throw natsRefusal(error, address) ?? error
  }
}

function open(client: Client, options: Resolved, { clock, logger }: ConnectContext): Transport {
  const { prefix, queues, timeoutMs } = options
  const server = abilitiesOf(client.nc)
  const settings = {
    ...options.settings,
    schedules: options.settings.schedules && server.schedules,
  }
  const closing = new AbortController()
  const connection = watchConnection(client.nc, clock, logger)
  const store: Store = {
    client,
    server,
    traits: natsTraits(server, settings),
    clock,
    serverClock: openServerClock(client, clock),
    streamAge: openStreamAge({ client, clock, logger }),
    logger,
    prefix,
    physical: queues,
    timeoutMs,
    settings,
    closing: closing.signal,
    stuck: new Map(),
    request: connection.request,
    tracked: connection.tracked,
    onReconnect: connection.onReconnect,
  }
  return natsTransport({
    store,
    problems: () => [...connection.problems(), ...store.stuck.values()],
    async end() {
      closing.abort(closedError('the transport'))
      await client.end()
    },
  })
}
