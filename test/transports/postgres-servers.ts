import pg from 'pg'
import postgresJs from 'postgres'
import { read } from '../../src/model/probe.ts'

export interface TestServer {
  readonly name: string
  readonly url: string
  /** Behind a pooler in transaction mode: nothing that lives in a session works. */
  readonly pooled: boolean
}

/** What `scripts/rig` started, or the environment names. */
export function postgresServers(): readonly TestServer[] {
  const { env } = process
  const known = [
    ['postgres 18', env.MILLRACE_TEST_POSTGRES_18_URL],
    ['postgres 13', env.MILLRACE_TEST_POSTGRES_13_URL],
    ['postgres', env.MILLRACE_TEST_POSTGRES_URL],
  ] as const
  return known.flatMap(([name, url]) => (url === undefined ? [] : [{ name, url, pooled: false }]))
}

export function pgBouncer(): TestServer | undefined {
  const url = process.env.MILLRACE_TEST_PGBOUNCER_URL
  return url === undefined ? undefined : { name: 'pgbouncer', url, pooled: true }
}

/** For `{ skip }` of node:test, so that a missing server is seen. */
export const NO_SERVER =
  'no postgres: run through `npm test`, or `npx node scripts/rig/main.ts run …`'

let made = 0

/** A schema that nobody used before. */
export function freshSchema(): string {
  made += 1
  return `t_${process.pid}_${made}_"x"`
}

/** What a closed pool had sent may go on in the server, and wait for the drop as the drop waits for it. */
const DEADLOCK = '40P01'
const DROPS_MAX = 5

export async function dropSchema(url: string, schema: string): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  for (let left = DROPS_MAX; ; left -= 1) {
    try {
      await client.query(`DROP SCHEMA IF EXISTS ${client.escapeIdentifier(schema)} CASCADE`)
      break
    } catch (error) {
      if (left === 0 || read(error, 'code') !== DEADLOCK) throw error
    }
  }
  await client.end()
}

export function nodePool(url: string, max = 10): pg.Pool {
  const pool = new pg.Pool({ connectionString: url, max })
  pool.on('error', () => {})
  return pool
}

/** Behind the pooler without prepared statements: with them its commits get lost (`refuseUnsafeCommits`). */
export function jsPool(
  url: string,
  max = 10,
  options: { readonly transform?: typeof postgresJs.camel } = {},
): postgresJs.Sql {
  const prepare = url !== pgBouncer()?.url
  return postgresJs(url, { max, prepare, onnotice: () => {}, ...options })
}
