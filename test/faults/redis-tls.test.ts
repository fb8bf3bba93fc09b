import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { createMillrace, defineQueue, silentLogger } from 'millrace'
import { type RedisOptions, redis } from 'millrace/redis'
import { redisStore } from 'millrace/store'
import { z } from 'zod'
import { freePort } from '../../scripts/rig/command.ts'
import { type RedisServer, startRedis } from '../../scripts/rig/redis-server.ts'
import { freshPrefix, NO_REDIS, redisServers } from '../transports/redis-servers.ts'
import { until } from '../transports/until.ts'
import { type Certificates, makeCertificates } from './certificates.ts'

const available = redisServers().some(({ name }) => name === 'redis 7')
const orders = defineQueue({ name: 'orders', owner: 'team-a', payload: z.string() })
const common = { queues: [orders], logger: silentLogger }

/** A server that wants a certificate of the client, and a password. */
describe('redis over TLS', { skip: available ? false : NO_REDIS }, () => {
  let made: Certificates
  let server: RedisServer
  let port = 0
  before(async () => {
    made = await makeCertificates()
    port = await freePort()
    const { caFile, server: own } = made
    const files = ['--tls-ca-cert-file', caFile, '--tls-cert-file', own.certFile]
    const args = ['--tls-port', String(port), ...files, '--tls-key-file', own.keyFile]
    server = await startRedis('redis 7', { args: [...args, '--requirepass', 'geheim'] })
  })
  after(async () => {
    await server?.stop()
    await made?.remove()
  })
  const at = (password = 'geheim', to = port): string =>
    `rediss://default:${password}@localhost:${to}`
  const mutual = () => ({ ca: made.ca, cert: made.client.cert, key: made.client.key })

  test('An app works with an authority of its own and a client certificate, its listening connection and a store included.', async () => {
    const address = { url: at(), tls: mutual() }
    const prefix = freshPrefix()
    const app = await createMillrace({
      ...common,
      transport: redis({ ...address, prefix, pollMs: 60_000 }),
      store: redisStore({ ...address, prefix }),
    })
    const came: string[] = []
    app.work(orders, (message) => void came.push(message.payload))
    await app.start()
    await app.send(orders, 'a')
    await until('a', () => came.length === 1)
    // Nothing but the listening connection could tell in time.
    await app.send(orders, 'b')
    await until('b', () => came.length === 2)
    assert.deepEqual(await app.health(), { ok: true, reasons: [] })
    await app.close()
  })

  test('What is wrong is said in one line with what to do, without the password.', async () => {
    const { ca, ...pair } = mutual()
    const cases: readonly (readonly [RedisOptions, RegExp])[] = [
      [{ url: at() }, /does not trust the server's certificate; pass .* as ca/],
      [{ url: at(), tls: { ca } }, /wants a certificate from us; pass cert and key/],
      [{ url: at(), tls: { ca, ...pair, servername: 'other' } }, /certificate is for other names/],
      [
        { url: at('geheim', server.port), tls: { ca } },
        /cannot connect to Redis|does not speak TLS/,
      ],
      [{ url: at('falsch'), tls: { ca, ...pair } }, /WRONGPASS/],
    ]
    for (const [options, said] of cases) {
      const opening = createMillrace({
        ...common,
        transport: redis({ ...options, timeoutMs: 2_000 }),
      })
      const error: unknown = await opening.then(
        (app) => app.close(),
        (refusal: unknown) => refusal,
      )
      assert.ok(error instanceof Error, `${said} was not refused`)
      assert.match(error.message, said)
      assert.doesNotMatch(error.message, /\n|geheim|falsch/)
    }
  })

  test('Certificates that would not be used are refused.', () => {
    const tls = { ca: 'x' }
    assert.throws(() => redis({ url: 'redis://host', tls }), /tls: .*redis:\/\/.* write rediss:/)
    const sentinels = { name: 'm', nodes: [{ host: 'h', port: 1 }] }
    assert.throws(() => redis({ sentinels, tls }), /neither sentinels.tls nor/)
  })
})
