import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { credsAuthenticator, nkeyAuthenticator, nkeys } from '@nats-io/transport-node'
import { createMillrace, defineQueue, silentLogger } from 'millrace'
import { type NatsOptions, nats } from 'millrace/nats'
import { z } from 'zod'
import { type NatsServer, startNats } from '../../scripts/rig/nats-server.ts'
import { backendUrl } from '../backends.ts'
import { until } from '../transports/until.ts'
import { type Certificates, makeCertificates } from './certificates.ts'
import { natsAccounts } from './nats-accounts.ts'

const orders = defineQueue({ name: 'orders', owner: 'team-a', payload: z.string() })
const common = { queues: [orders], logger: silentLogger }

if (backendUrl('nats') !== undefined)
  describe('a nats server that is strict', () => {
    let made: Certificates
    const started: NatsServer[] = []
    const keys = { known: nkeys.createUser(), strange: nkeys.createUser() }
    const accounts = natsAccounts()
    const start = async (...config: readonly string[]): Promise<void> => {
      started.push(await startNats({ config }))
    }
    before(async () => {
      made = await makeCertificates()
      await start(tls(made), users(keys.known.getPublicKey()))
      await start('authorization { token: geheim }')
      await start(...accounts.config)
      await start('no_auth_user: x', 'accounts { A { users: [{ user: x, password: y }] } }')
    })
    after(async () => {
      await Promise.all(started.map((server) => server.stop()))
      await made?.remove()
    })
    const at = (n: number, begins: string): string => `${begins}localhost:${started[n]?.port ?? 0}`
    const mutual = () => {
      const { cert, key } = made.client
      return { ca: String(made.ca), cert: String(cert), key: String(key) }
    }

    test('An app works over TLS with a client certificate, by password and by nkey, with a token, and with a creds file.', async () => {
      const { known } = keys
      const authenticator = nkeyAuthenticator(known.getSeed())
      await works({ servers: at(0, 'tls://app:geheim@'), client: { tls: mutual() } })
      await works({ servers: at(0, 'tls://'), client: { tls: mutual(), authenticator } })
      await works({ servers: at(1, 'nats://geheim@') })
      await works({ servers: at(1, 'nats://'), client: { token: 'geheim' } })
      const creds = { authenticator: credsAuthenticator(accounts.creds) }
      await works({ servers: at(2, 'nats://'), client: creds })
    })

    test('What is wrong is said in one line with what to do, without the password.', async () => {
      const strange = nkeyAuthenticator(keys.strange.getSeed())
      const foreign = credsAuthenticator(natsAccounts().creds)
      const { ca } = mutual()
      const own = (more: object) => ({ tls: { ...mutual(), ...more } })
      const cases: readonly (readonly [NatsOptions, RegExp])[] = [
        [{ servers: at(0, 'tls://app:geheim@') }, /does not trust the server's certificate/],
        [{ servers: at(0, 'tls://app:geheim@'), client: { tls: { ca } } }, /pass client: { tls/],
        [{ servers: at(0, 'tls://app:falsch@'), client: own({}) }, /does not let this account in/],
        [
          { servers: at(0, 'tls://'), client: { ...own({}), authenticator: strange } },
          /does not let this account in/,
        ],
        [{ servers: at(1, 'nats://falsch@') }, /does not let this account in; check .* token/],
        [{ servers: at(1, 'tls://geheim@') }, /does not speak TLS; write nats:\/\//],
        [
          { servers: at(2, 'nats://'), client: { authenticator: foreign } },
          /does not let this account in; check .* creds file/,
        ],
        [{ servers: at(3, 'nats://') }, /JetStream is off .*for this account; switch it on/],
      ]
      for (const [options, said] of cases) {
        const transport = nats({ timeoutMs: 2_000, ...options })
        const error: unknown = await createMillrace({ ...common, transport }).then(
          (app) => app.close(),
          (refusal: unknown) => refusal,
        )
        assert.ok(error instanceof Error, `${said} was not refused`)
        assert.match(error.message, said)
        assert.match(error.message, /^nats: [^\n]*$/)
        assert.doesNotMatch(`${error.stack} ${error.cause}`, /geheim|falsch/)
      }
    })
  })

async function works(options: NatsOptions): Promise<void> {
  const app = await createMillrace({ ...common, transport: nats(options) })
  try {
    const came: string[] = []
    app.work(orders, (message) => void came.push(message.payload))
    await app.start()
    await app.send(orders, 'a')
    await until('a', () => came.length === 1)
    assert.deepEqual(await app.health(), { ok: true, reasons: [] })
  } finally {
    await app.close()
  }
}

function tls({ caFile, server }: Certificates): string {
  const files = `cert_file: "${server.certFile}", key_file: "${server.keyFile}", ca_file: "${caFile}"`
  return `tls { ${files}, verify: true, timeout: 5 }`
}

function users(nkey: string): string {
  return `authorization { users: [{ user: app, password: geheim }, { nkey: ${nkey} }] }`
}
