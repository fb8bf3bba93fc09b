import type { JetStreamManager } from '@nats-io/jetstream'
import type { ConnectionOptions, MsgHdrs, NatsConnection } from '@nats-io/transport-node'
import { type Clock, pause } from '../../model/clock.ts'
import { MillraceError } from '../../model/errors.ts'
import { addressed } from './address.ts'

/** The official client, as far as we use it. */
export interface Client {
  readonly nc: NatsConnection
  readonly manager: JetStreamManager
  readonly headers: (fields: Readonly<Record<string, string>>) => MsgHdrs
  readonly inbox: () => string
  /** What the subjects of JetStream's API begin with. */
  readonly api: string
  /** Closes the connection when it is ours; bounded in time. */
  readonly end: () => Promise<void>
}

export type NatsAddress =
  | {
      /** `nats://host:4222`, or several of one cluster; `tls://` for TLS. May hold `user:password@` or `token@`. */
      readonly servers: string | readonly string[]
      /** Everything else that the client's `connect` takes: `tls`, `authenticator`, `user`, `token`, `inboxPrefix`. */
      readonly client?: Omit<ConnectionOptions, 'servers'>
      readonly connection?: never
    }
  | {
      /** A ready-made connection of `@nats-io/transport-node`; it stays open when Millrace closes. */
      readonly connection: NatsConnection
      readonly servers?: never
      readonly client?: never
    }

export interface OpenOptions {
  readonly clock: Clock
  readonly signal: AbortSignal
  readonly timeoutMs: number
  /** Under which inboxes are made, for accounts that allow only some. */
  readonly inboxPrefix: string | undefined
  /** Of JetStream; undefined: the server's own. */
  readonly domain: string | undefined
}

/**
 * @throws MILLRACE_MISSING_CLIENT when the official client is not installed
 */
export async function openClient(address: NatsAddress, options: OpenOptions): Promise<Client> {
  const { core, jetstream } = await load()
  const { timeoutMs, clock } = options
  const own = address.connection === undefined
  const nc = own
    ? await connecting(core.connect(settings(address, options)), options)
    : address.connection
  try {
    const manager = await jetstream.jetstreamManager(nc, {
      timeout: timeoutMs,
      checkAPI: false,
      ...(options.domain === undefined ? {} : { domain: options.domain }),
    })
    return {
      nc,
      manager,
      headers(fields) {
        const made = core.headers()
        for (const [name, value] of Object.entries(fields)) made.set(name, value)
        return made
      },
      api: manager.getOptions().apiPrefix ?? '$JS.API',
      inbox: () => core.createInbox(options.inboxPrefix),
      async end() {
        if (!own || nc.isClosed()) return
        const flushed = new AbortController()
        const late = pause(clock, FLUSH_MS, flushed.signal)
        await Promise.race([nc.flush().catch(() => {}), late])
        // A timer that is left would keep the process up.
        flushed.abort()
        await nc.close()
      },
    }
  } catch (error) {
    if (own) await nc.close()
    throw error
  }
}

/** How long a close waits for what was written to reach the server. */
const FLUSH_MS = 1_000

/**
 * The connection comes back by itself for ever, at least twice a second: who has had enough closes it. Pings find a dead one
 * within some seconds; the client's own two minutes are longer than a lease.
 */
function settings(address: NatsAddress, { timeoutMs }: OpenOptions): ConnectionOptions {
  const { servers = [], client = {} } = address
  return {
    maxReconnectAttempts: -1,
    reconnectTimeWait: 250,
    reconnectJitter: 250,
    pingInterval: 5_000,
    maxPingOut: 2,
    timeout: timeoutMs,
    name: 'millrace',
    // A stack made beforehand for every request that may fail costs more than the request itself (a quarter of the CPU).
    noAsyncTraces: true,
    ...addressed(servers),
    ...client,
  }
}

/** A connection that arrives after the attempt was given up is closed. */
async function connecting(
  attempt: Promise<NatsConnection>,
  { signal }: OpenOptions,
): Promise<NatsConnection> {
  const aborted = Promise.withResolvers<never>()
  const abort = (): void => aborted.reject(signal.reason)
  signal.addEventListener('abort', abort, { once: true })
  try {
    return await Promise.race([attempt, aborted.promise])
  } catch (error) {
    attempt.then(
      (late) => late.close(),
      () => {},
    )
    throw error
  } finally {
    signal.removeEventListener('abort', abort)
  }
}

interface Packages {
  readonly core: typeof import('@nats-io/transport-node')
  readonly jetstream: typeof import('@nats-io/jetstream')
}

async function load(): Promise<Packages> {
  try {
    const [core, jetstream] = await Promise.all([
      import('@nats-io/transport-node'),
      import('@nats-io/jetstream'),
    ])
    return { core, jetstream }
  } catch (error) {
    throw new MillraceError(
      'MILLRACE_MISSING_CLIENT',
      'millrace/nats needs the official client; run: npm install @nats-io/transport-node @nats-io/jetstream',
      { cause: error },
    )
  }
}
