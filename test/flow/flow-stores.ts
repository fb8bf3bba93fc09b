import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after } from 'node:test'
import {
  memoryStore,
  postgresStore,
  redisStore,
  type StoreConnector,
  sqliteStore,
} from 'millrace/store'
import { backendUrl } from '../backends.ts'
import { freshPrefix } from '../transports/redis-servers.ts'

/** One store of each kind that is here, empty or with names that nobody else uses. */
export function flowStores(): ReadonlyMap<string, StoreConnector> {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-flow-'))
  after(() => rmSync(folder, { recursive: true, force: true }))
  const found = new Map<string, StoreConnector>([
    ['memory', memoryStore()],
    ['sqlite', sqliteStore({ file: join(folder, 'store.db') })],
  ])
  const redis = backendUrl('redis 7')
  if (redis !== undefined) found.set('redis', redisStore({ url: redis, prefix: freshPrefix() }))
  const postgres = backendUrl('postgres 18')
  if (postgres !== undefined) found.set('postgres', postgresStore({ url: postgres }))
  return found
}

/** A name that no earlier run has used: stores on servers outlive a test. */
export function freshQueue(): string {
  return `flow-${freshPrefix().replaceAll(/[^a-zA-Z0-9]/g, '')}`
}
