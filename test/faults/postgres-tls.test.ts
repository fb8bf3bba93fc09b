import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { createMillrace, defineQueue, hasCode, silentLogger } from 'millrace'
import { postgres } from 'millrace/postgres'
import { z } from 'zod'
import { type PostgresServer, startPostgres } from '../../scripts/rig/postgres-server.ts'
import { NO_SERVER, nodePool, postgresServers } from '../transports/postgres-servers.ts'
import { until } from '../transports/until.ts'
import { type Certificates, makeCertificates } from './certificates.ts'

const available = postgresServers().some(({ name }) => name === 'postgres 18')
const orders = defineQueue({ name: 'orders', owner: 'team-shop', payload: z.string() })

const OURS = `
SELECT count(*) FILTER (WHERE s.ssl)::int4 AS encrypted, count(*) FILTER (WHERE NOT s.ssl)::int4 AS plain
FROM pg_stat_ssl AS s JOIN pg_stat_activity AS a USING (pid) WHERE a.application_name = 'millrace'`

describe('TLS to Postgres', { skip: available ? false : NO_SERVER }, () => {
  let certificates: Certificates
  let server: PostgresServer
  before(async () => {
    certificates = await makeCertificates()
    server = await startPostgres(18, { tls: certificates.server })
  })
  after(async () => {
    await server.stop()
    await certificates.remove()
  })

  const opened = (query: string) =>
    createMillrace({
      transport: postgres({ url: `${server.url}${query}`, schema: 'tls' }),
      queues: [orders],
      logger: silentLogger,
    })

  /** Ours that are open while a message is sent and handled. */
  const connections = async (query: string) => {
    const app = await opened(query)
    const handled = Promise.withResolvers<string>()
    app.work(orders, ({ payload }) => handled.resolve(payload))
    await app.start()
    await app.send(orders, 'o-1')
    assert.equal(await handled.promise, 'o-1')
    const looker = nodePool(server.url, 1)
    const { rows } = await looker.query(OURS)
    await looker.end()
    await app.close()
    return rows[0]
  }

  test('every connection is encrypted as the address says, that of the news, too', async () => {
    for (const mode of ['no-verify', `verify-full&sslrootcert=${certificates.caFile}`]) {
      const { encrypted, plain } = await connections(`?sslmode=${mode}`)
      assert.ok(encrypted >= 2 && plain === 0, `${mode}: ${encrypted} encrypted, ${plain} plain`)
    }
    const { encrypted, plain } = await connections('')
    assert.ok(encrypted === 0 && plain >= 2)
  })

  const refusals: Readonly<Record<string, readonly [query: string, RegExp]>> = {
    'an authority that nobody named': [
      '?sslmode=verify-full',
      /^postgres: this machine does not trust .* as sslrootcert=<file> in the address/,
    ],
    'a file that is not there': [
      '?sslmode=verify-full&sslrootcert=/nowhere/ca.pem',
      /^postgres: the file "\/nowhere\/ca\.pem" cannot be read \(ENOENT\); correct its name/,
    ],
  }
  for (const [what, [query, message]] of Object.entries(refusals)) {
    test(`${what} is told of at the start`, async () => {
      await assert.rejects(opened(query), (error: Error) => {
        assert.ok(hasCode(error, 'MILLRACE_UNAVAILABLE'))
        assert.match(error.message, message)
        return true
      })
    })
  }

  test('a server that wants TLS says so to whoever comes without', async () => {
    await wantTls(server.url)
    const refusal = async (): Promise<unknown> =>
      opened('').then(
        (app) => void app.close(),
        (error: unknown) => error,
      )
    await until('the server has read its rules', async () => (await refusal()) !== undefined)
    const error = await refusal()
    assert.ok(hasCode(error, 'MILLRACE_DENIED'))
    assert.match(
      String(error),
      /does not let this account in without TLS \(28000: .*\); add \?sslmode=verify-full/,
    )
    await (await opened('?sslmode=no-verify')).close()
  })
})

test('an sslmode that nobody knows is refused before anybody connects', () => {
  assert.throws(
    () => postgres({ url: `postgres://127.0.0.1:5432/shop?sslmode=verify-fully` }),
    /sslmode: expected one of disable, prefer, require, verify-ca, verify-full, no-verify, got "verify-fully"/,
  )
})

async function wantTls(url: string): Promise<void> {
  const administrator = nodePool(url, 1)
  const { rows } = await administrator.query(`SELECT current_setting('hba_file') AS file`)
  await administrator.query(`COPY (SELECT 'hostssl all all all trust') TO '${rows[0].file}'`)
  await administrator.query('SELECT pg_reload_conf()')
  await administrator.end()
}
