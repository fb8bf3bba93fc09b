import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { jetstreamManager } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'
import { createClient } from '@redis/client'
import pg from 'pg'
import type { Backend, Place } from './contender.ts'

/** Empty places to keep messages in. */
export interface Places {
  with<T>(backend: Backend, use: (place: Place) => Promise<T>): Promise<T>
}

let made = 0

export interface Servers {
  /** A Postgres where we may create databases. */
  readonly postgres: string | undefined
  /** A Redis of our own, which is emptied. */
  readonly redis: string | undefined
  /** A NATS server of our own, whose streams are removed. */
  readonly nats: string | undefined
}

export function places(servers: Servers): Places {
  return {
    async with(backend, use) {
      const folder = mkdtempSync(join(tmpdir(), 'millrace-bench-'))
      const place = { file: join(folder, 'bench.db'), url: '' }
      try {
        if (backend === 'memory' || backend === 'sqlite') return await use(place)
        const serverUrl = servers[backend]
        if (serverUrl === undefined) throw new Error(`there is no ${backend} server`)
        if (backend === 'redis') return await withEmptyRedis(serverUrl, use, place)
        if (backend === 'nats') return await withEmptyNats(serverUrl, use, place)
        return await withDatabase(serverUrl, (url) => use({ ...place, url }))
      } finally {
        rmSync(folder, { recursive: true, force: true })
      }
    },
  }
}

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
  use: (place: Place) => Promise<T>,
  place: Place,
): Promise<T> {
  const client = createClient({ url })
  await client.connect()
  try {
    await client.sendCommand(['FLUSHALL'])
    return await use({ ...place, url })
  } finally {
    await client.sendCommand(['FLUSHALL'])
    client.destroy()
  }
}

async function withEmptyNats<T>(
  url: string,
  use: (place: Place) => Promise<T>,
  place: Place,
): Promise<T> {
  try {
    return await use({ ...place, url })
  } finally {
    const connection = await connect({ servers: url })
    const { streams } = await jetstreamManager(connection)
    for await (const name of streams.names()) await streams.delete(name)
    await connection.close()
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
