import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import type { Backend, Place } from './contender.ts'

/** Empty places to keep messages in. */
export interface Places {
  with<T>(backend: Backend, use: (place: Place) => Promise<T>): Promise<T>
}

let made = 0

/** `serverUrl`: a Postgres where we may create databases. */
export function places(serverUrl: string | undefined): Places {
  return {
    async with(backend, use) {
      const folder = mkdtempSync(join(tmpdir(), 'millrace-bench-'))
      const place = { file: join(folder, 'bench.db'), url: '' }
      try {
        if (backend !== 'postgres') return await use(place)
        if (serverUrl === undefined) throw new Error('there is no Postgres server')
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

async function onServer(url: string, sql: string): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    await client.query(sql)
  } finally {
    await client.end()
  }
}
