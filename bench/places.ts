import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createClient } from '@redis/client'
import pg from 'pg'
import { withEmptyKafka, withEmptyNats, withEmptyRabbitmq, withEmptySqs } from './broker-places.ts'
import type { Backend, Contender, Place } from './contender.ts'

/** Empty places to keep messages in. */
export interface Places {
  with<T>(contender: Contender, use: (place: Place) => Promise<T>): Promise<T>
}

let made = 0

/** Addresses: of a Postgres where we may create databases, and of brokers of our own, which are emptied. */
export type Servers = Readonly<Partial<Record<Backend, string>>>

export function places(servers: Servers): Places {
  return {
    async with({ backend, fsync }, use) {
      const folder = mkdtempSync(join(tmpdir(), 'millrace-bench-'))
      const file = join(folder, 'bench.db')
      const at = (url: string) => use({ file, url })
      try {
        if (backend === 'memory' || backend === 'sqlite') return await at('')
        const url = servers[backend]
        if (url === undefined) throw new Error(`there is no ${backend} server`)
        if (backend === 'postgres') return await withDatabase(url, at)
        const inside = (): ReturnType<typeof use> => at(url)
        if (backend === 'redis') return await withEmptyRedis(url, fsync ?? 'always', inside)
        return await EMPTY[backend](url, inside)
      } finally {
        rmSync(folder, { recursive: true, force: true })
      }
    },
  }
}

const EMPTY = {
  nats: withEmptyNats,
  rabbitmq: withEmptyRabbitmq,
  kafka: withEmptyKafka,
  sqs: withEmptySqs,
} as const

async function withDatabase<T>(serverUrl: string, use: (url: string) => Promise<T>): Promise<T> {
  made += 1
  const name = `bench_${process.pid}_${made}`
  await onServer(serverUrl, `CREATE DATABASE ${name}`)
  const url = new URL(serverUrl)
  url.pathname = `/${name}`
  try {
    return await use(url.href)
  } finally {
    await onServer(serverUrl, `DROP DATABASE ${name} WITH (FORCE)`)
    // What one contender leaves to write must not slow down the next.
    await onServer(serverUrl, 'CHECKPOINT')
  }
}

async function withEmptyRedis<T>(
  url: string,
  fsync: 'always' | 'everysec',
  use: () => Promise<T>,
): Promise<T> {
  const client = createClient({ url })
  await client.connect()
  try {
    await client.sendCommand(['FLUSHALL'])
    await client.sendCommand(['CONFIG', 'SET', 'appendfsync', fsync])
    return await use()
  } finally {
    await client.sendCommand(['FLUSHALL'])
    client.destroy()
  }
}

async function onServer(url: string, sql: string): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    await client.query(sql)
  } finally {
    await client.end()
  }
}
