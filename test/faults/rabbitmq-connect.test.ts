import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { credentials } from 'amqplib'
import { createMillrace, defineQueue, silentLogger } from 'millrace'
import { type RabbitmqOptions, rabbitmq } from 'millrace/rabbitmq'
import { memoryStore } from 'millrace/store'
import { z } from 'zod'
import { freePort } from '../../scripts/rig/command.ts'
import { type RabbitmqServer, startRabbitmq } from '../../scripts/rig/rabbitmq-server.ts'
import { backendUrl } from '../backends.ts'
import { freshName, openRabbit, withChannel } from '../transports/rabbitmq-subjects.ts'
import { until } from '../transports/until.ts'
import { type Certificates, makeCertificates } from './certificates.ts'

/** A broker that wants TLS with a certificate of the client, with a vhost and an account of their own. */
describe('a RabbitMQ that is strict', { skip: backendUrl('rabbitmq') === undefined }, () => {
  let made: Certificates
  let server: RabbitmqServer
  let port = 0
  before(async () => {
    made = await makeCertificates()
    port = await freePort()
    const plugins = ['rabbitmq_auth_mechanism_ssl']
    server = await startRabbitmq({ plugins, config: tls(made, port) })
    await server.ctl('add_vhost', 'shop/eu')
    await server.ctl('add_user', 'app', 'geheim')
    await server.ctl('set_permissions', '-p', 'shop/eu', 'app', '.*', '.*', '.*')
  })
  after(async () => {
    await server?.stop()
    await made?.remove()
  })
  const at = (login = 'app:geheim@'): string => `amqps://${login}localhost:${port}/shop%2Feu`
  const mutual = () => ({ ca: [made.ca], cert: made.client.cert, key: made.client.key })

  test('An app works in its vhost over TLS with an authority of its own and a client certificate, and is seen in no other vhost.', async () => {
    for (const login of ['app:geheim@', '']) {
      // Without user and password the certificate's name is the account's.
      const socket = login === '' ? { ...mutual(), credentials: credentials.external() } : mutual()
      const queue = freshName('secret')
      await works({ url: at(login), socket, queues: { orders: { queue } } })
      await withChannel(server.url, (channel) => assert.rejects(channel.checkQueue(queue), /404/))
    }
  })

  test('What is wrong with a certificate, a protocol or an account is said in one line with what to do, without the password.', async () => {
    const { ca, cert, key } = mutual()
    const plain = `amqps://app:geheim@localhost:${server.port}`
    const cases: readonly (readonly [string, object, RegExp])[] = [
      [at(), {}, /does not trust the server's certificate; pass .* as ca/],
      [at(), { ca }, /wants a certificate from us; pass cert and key/],
      [at(), { ca, cert: made.server.cert, key }, /cert and key do not belong together/],
      [at(), { ca, cert, key, servername: 'elsewhere' }, /certificate is for other names/],
      [plain, { ca }, /does not speak TLS; correct the port/],
      [at('app:falsch@'), { ca, cert, key }, /does not let this account in .*check user and pass/],
      [at().replace('%2Feu', ''), { ca, cert, key }, /not into vhost "shop"; make the vhost/],
    ]
    for (const [url, socket, said] of cases) {
      const opening = createMillrace({ ...common, transport: rabbitmq({ url, socket }) })
      const error: unknown = await opening.then(
        (app) => app.close(),
        (refusal: unknown) => refusal,
      )
      assert.ok(error instanceof Error, `${said} was not refused`)
      assert.match(error.message, said)
      assert.match(error.message, /^rabbitmq[^\n]*$/)
      assert.doesNotMatch(JSON.stringify([error.message, error]), /geheim|falsch/)
    }
  })

  test('Of several hosts one that is away stops neither the start nor the way back, wherever the turn begins.', async () => {
    const away = `amqp://127.0.0.1:${await freePort()}`
    for (const url of [
      [away, server.url],
      [server.url, away],
      [away, away, server.url],
    ]) {
      for (let times = 0; times < 3; times++) {
        const transport = await openRabbit({ url, delays: false })
        await transport.close()
      }
    }
    const said: string[] = []
    const logger = { ...silentLogger, info: (line: string) => void said.push(line) }
    const transport = await openRabbit({ url: [away, server.url, away], delays: false }, logger)
    await server.ctl('close_all_connections', 'a test')
    const back = () => said.filter((line) => /connection is back after/.test(line))
    await until('both connections', () => back().length === 2)
    assert.deepEqual(transport.problems?.(), [])
    await transport.close()
  })
})

const orders = defineQueue({ name: 'orders', owner: 'team-a', payload: z.string() })
const common = { queues: [orders], store: memoryStore(), logger: silentLogger }

async function works(options: RabbitmqOptions): Promise<void> {
  const app = await createMillrace({ ...common, transport: rabbitmq(options) })
  try {
    const came: string[] = []
    app.work(orders, (message) => void came.push(message.payload))
    await app.start()
    await app.send(orders, 'a')
    await app.send(orders, 'later', { delayMs: 64 })
    await until('both', () => came.length === 2)
    assert.deepEqual(await app.health(), { ok: true, reasons: [] })
  } finally {
    await app.close()
  }
}

function tls({ caFile, server }: Certificates, port: number): readonly string[] {
  return [
    `listeners.ssl.1 = 127.0.0.1:${port}`,
    `ssl_options.cacertfile = ${caFile}`,
    `ssl_options.certfile = ${server.certFile}`,
    `ssl_options.keyfile = ${server.keyFile}`,
    'ssl_options.verify = verify_peer',
    'ssl_options.fail_if_no_peer_cert = true',
    'ssl_cert_login_from = common_name',
    'auth_mechanisms.1 = PLAIN',
    'auth_mechanisms.2 = EXTERNAL',
  ]
}
