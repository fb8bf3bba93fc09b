import { CALL_TIMEOUT_MS, limited } from './pg-limit.ts'
import { quoteIdentifier } from './pg-name.ts'
import type { PgListen, PgListening, PgPoolOptions } from './pg-pool.ts'
import { UNREAD_MS, unreadLimit } from './pg-setting.ts'
import type { PgClientLike, PgPoolLike } from './pg-shapes.ts'

const PING = 'SELECT 1'
/** What nobody reads keeps the server's queue of notifications from being cleaned, in all its databases. */
const LIMIT_UNREAD = `SELECT ${unreadLimit(`${UNREAD_MS}`, { local: false })}`
const PING_TIMEOUT_MS = 5_000

interface DedicatedClient extends PgClientLike {
  connect(): Promise<unknown>
  end(): Promise<void>
}

interface ClientClass {
  new (options: unknown): DedicatedClient
}

/** Listens on a connection outside the pool, made with the pool's own client class and settings. */
export function nodePostgresListen(pool: PgPoolLike, { clock }: PgPoolOptions): PgListen {
  return async (channel, ear) => {
    const client = makeClient(pool)
    let over = false
    const close = (): void => {
      if (over) return
      over = true
      // With a query in hand `end` destroys the socket; without one it says goodbye, which may never be answered.
      void client.end().catch(() => {})
      destroySocket(client)
    }
    const lost = (error: unknown): void => {
      if (over) return
      close()
      ear.lost(error)
    }
    client.on('error', lost)
    client.on('end', () => lost(new Error('Connection terminated')))
    client.on('notification', (message) => ear.hear(payloadOf(message)))
    const limit = { clock, abandon: close }
    try {
      await limited(client.connect(), { ...limit, timeoutMs: CALL_TIMEOUT_MS })
      const listening = client.query({ text: `LISTEN ${quoteIdentifier(channel)};${LIMIT_UNREAD}` })
      await limited(listening, { ...limit, timeoutMs: CALL_TIMEOUT_MS })
    } catch (error) {
      close()
      throw error
    }
    return listeningOn(client, clock, close, lost)
  }
}

function listeningOn(
  client: DedicatedClient,
  clock: PgPoolOptions['clock'],
  close: () => void,
  lost: (error: unknown) => void,
): PgListening {
  return {
    close,
    ping: async () => {
      try {
        await limited(client.query({ text: PING }), { clock, timeoutMs: PING_TIMEOUT_MS })
      } catch (error) {
        lost(error)
        throw error
      }
    },
  }
}

function makeClient(pool: PgPoolLike): DedicatedClient {
  const { Client, options } = pool as unknown as {
    readonly Client: ClientClass
    readonly options: unknown
  }
  return new Client(options)
}

function destroySocket(client: DedicatedClient): void {
  const { connection } = client as unknown as {
    readonly connection?: { readonly stream?: { destroy?(): void } }
  }
  connection?.stream?.destroy?.()
}

function payloadOf(message: unknown): string {
  const hasPayload = typeof message === 'object' && message !== null && 'payload' in message
  return hasPayload && typeof message.payload === 'string' ? message.payload : ''
}
