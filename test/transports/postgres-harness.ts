import { DEFAULT_OWNER, type Harness, type UserTransaction } from 'millrace/conformance'
import { postgres } from 'millrace/postgres'
import type pg from 'pg'
import { systemClock } from '../../src/model/clock.ts'
import { silentLogger } from '../../src/model/logger.ts'
import type { Connector, Transport } from '../../src/transport/transport.ts'
import { dropSchema, freshSchema, jsPool, nodePool, type TestServer } from './postgres-servers.ts'

const { signal } = new AbortController()

export interface PostgresHarnessOptions {
  readonly server: TestServer
  readonly client: 'address' | 'pg' | 'postgres.js'
}

interface UserClient {
  readonly connector: (schema: string) => Connector
  begin(): Promise<UserTransaction>
  end(): Promise<void>
}

export async function postgresHarness({
  server,
  client,
}: PostgresHarnessOptions): Promise<Harness> {
  const schema = freshSchema()
  const user = client === 'postgres.js' ? jsUser(server) : nodeUser(server, client)
  const elsewhere = nodePool(server.url)
  let queues = 0
  const connect = (): Promise<Transport> =>
    user.connector(schema).connect({
      signal,
      clock: systemClock(),
      random: Math.random,
      logger: silentLogger,
      migrate: 'auto',
    })
  const first = await connect()
  return {
    name: `${server.name}, ${client}`,
    connect,
    async freshQueue({ maxDepth, owner = DEFAULT_OWNER, onDead = 'continue', ageingMs } = {}) {
      queues += 1
      const name = `queue ${queues}`
      await first.topology.ensure(
        [{ name, owner, maxDepth, onDead, ...(ageingMs === undefined ? {} : { ageingMs }) }],
        signal,
      )
      return name
    },
    slow: 1,
    leaseMs: 500,
    transaction: () => user.begin(),
    foreignTransactions: () => [elsewhere, { execute: 1 }, { query() {} }],
    async dispose() {
      await first.close()
      await user.end()
      await elsewhere.end()
      await dropSchema(server.url, schema)
    },
  }
}

function nodeUser(server: TestServer, client: 'address' | 'pg'): UserClient {
  const pool = nodePool(server.url, 20)
  const listen = !server.pooled
  return {
    connector: (schema) =>
      postgres(client === 'pg' ? { pool, schema, listen } : { url: server.url, schema, listen }),
    begin: () => beginNode(pool),
    end: () => pool.end(),
  }
}

async function beginNode(pool: pg.Pool): Promise<UserTransaction> {
  const tx = await pool.connect()
  await tx.query('BEGIN')
  const finish = async (how: string): Promise<void> => {
    await tx.query(how)
    tx.release()
  }
  return { tx, commit: () => finish('COMMIT'), rollback: () => finish('ROLLBACK') }
}

class RolledBack extends Error {}

function jsUser(server: TestServer): UserClient {
  const sql = jsPool(server.url, 20)
  return {
    connector: (schema) => postgres({ pool: sql, schema, listen: !server.pooled }),
    begin: () =>
      new Promise((resolve, reject) => {
        const gate = Promise.withResolvers<void>()
        const done = sql
          .begin(async (tx) => {
            const end = async (): Promise<void> => {
              await done
            }
            resolve({
              tx,
              commit: () => {
                gate.resolve()
                return end()
              },
              rollback: () => {
                gate.reject(new RolledBack())
                return end()
              },
            })
            await gate.promise
          })
          .then(
            () => {},
            (error: unknown) => {
              if (error instanceof RolledBack) return
              reject(error)
              throw error
            },
          )
      }),
    end: () => sql.end(),
  }
}
