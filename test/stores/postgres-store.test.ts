import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type StoreHarness, storeConformance } from 'millrace/conformance'
import { postgresStore } from 'millrace/store'
import { type BackendName, backendUrl } from '../backends.ts'
import { recordResult } from '../conformance-results.ts'
import { kitDepth } from '../depth.ts'
import { type Kit, runKits } from '../kits.ts'
import {
  dropSchema,
  freshSchema,
  jsPool,
  nodePool,
  type TestServer,
} from '../transports/postgres-servers.ts'
import { connectStore } from './store-harness.ts'

type Client = 'pg' | 'postgres.js'

function harnessOf(server: TestServer, client: Client): StoreHarness {
  const schema = freshSchema()
  const pool = client === 'pg' ? nodePool(server.url) : jsPool(server.url)
  const connector = postgresStore({ pool, schema })
  return {
    name: `${server.name} store, ${client}`,
    slow: 1,
    leaseMs: 800,
    connect: () => connectStore(connector),
    async dispose() {
      await pool.end()
      await dropSchema(server.url, schema)
    },
  }
}

const subjects: readonly (readonly [BackendName, Client])[] = [
  ['postgres 18', 'pg'],
  ['postgres 18', 'postgres.js'],
  ['postgres 13', 'pg'],
  ['pgbouncer', 'pg'],
  ['pgbouncer', 'postgres.js'],
]
const kits: Kit[] = []
for (const [name, client] of subjects) {
  const url = backendUrl(name)
  if (url === undefined) continue
  const harness = harnessOf({ name, url, pooled: name === 'pgbouncer' }, client)
  kits.push({
    name: harness.name,
    atOnce: 1,
    // The pooler and this client are shown apart by others.
    leftToFull: name === 'pgbouncer' && client === 'postgres.js',
    register: (test) =>
      storeConformance({ test, harness, depth: kitDepth, onResult: recordResult }),
    dispose: () => harness.dispose(),
  })
}
await runKits(kits, 3)

test('what is wrong with the options of a Postgres store is said at once', () => {
  const options: { url: string } = JSON.parse('{"nobody":1}')
  assert.throws(() => postgresStore(options), {
    code: 'MILLRACE_INVALID_OPTIONS',
    message: /postgresStore: .*nobody.*url or pool/,
  })
  const sql = postgresStore({ url: 'postgres://x/y', schema: 'a b' }).migrationSql?.() ?? ''
  assert.match(sql, /CREATE TABLE "a b"\.store_key/)
})
