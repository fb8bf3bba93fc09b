import assert from 'node:assert/strict'
import { createServer } from 'node:net'
import { after, before, test } from 'node:test'
import { inspect } from 'node:util'
import { createMillrace, defineQueue } from 'millrace'
import { type KafkaConnection, kafka, type Secret } from 'millrace/kafka'
import { memoryStore } from 'millrace/store'
import { z } from 'zod'
import { freePort } from '../../scripts/rig/command.ts'
import { silentLogger } from '../../src/model/logger.ts'
import { backendUrl } from '../backends.ts'
import { until } from '../transports/until.ts'
import { type Certificates, makeCertificates } from './certificates.ts'
import {
  PASSWORD,
  type StrictKafka,
  startStrictKafka,
  USER,
  unsignedToken,
} from './kafka-strict-server.ts'

let queues = 0

const skip = backendUrl('kafka') === undefined
let made: Certificates
let server: StrictKafka
before(async () => {
  if (skip) return
  made = await makeCertificates()
  server = await startStrictKafka(made)
})
after(async () => {
  await server?.stop()
  await made?.remove()
})
const tls = () => ({ ca: [made.ca] })
const account = { username: USER, password: PASSWORD }

for (const mechanism of ['PLAIN', 'SCRAM-SHA-256', 'SCRAM-SHA-512'] as const) {
  test(`An app works over TLS with an account by ${mechanism}.`, { skip }, () =>
    works(server.account, { tls: tls(), sasl: { mechanism, ...account } }),
  )
}

test('An app works with a token of a function, and with a password of one.', { skip }, async () => {
  let asked = 0
  const token = async (): Promise<string> => {
    asked += 1
    return unsignedToken(60_000)
  }
  await works(server.account, { tls: tls(), sasl: { mechanism: 'OAUTHBEARER', token } })
  assert.ok(asked > 1, `asked ${asked} times, once for each connection`)
  const sasl = { mechanism: 'SCRAM-SHA-256', username: USER, password: () => PASSWORD } as const
  await works(server.account, { tls: tls(), sasl })
})

test('An app works with a certificate of its own in place of an account.', { skip }, async () => {
  const { cert, key } = made.client
  await works(server.mutual, { tls: { ...tls(), cert, key } })
})

test('What is wrong with a certificate, an account or an address is said in one line with what to do, without a secret.', {
  skip,
}, async () => {
  for (const [code, address, connection, said] of [
    ...tlsCases(),
    ...accountCases(),
    await awayCase(),
  ]) {
    const error = await refusalOf([address], connection)
    assert.match(error.message, said)
    assert.match(error.message, /^kafka[^\n]*$/)
    assert.equal(Reflect.get(error, 'code'), `MILLRACE_${code}`, error.message)
    assert.doesNotMatch(JSON.stringify([error.message, error]), /geheim|falsch/)
    assert.doesNotMatch(inspect(error, { depth: 10 }), /geheim/)
  }
})

test('Hosts that are away, or take a connection and stay silent, are passed over, wherever they stand.', {
  skip,
}, async () => {
  const silent = createServer(() => {})
  const port = await freePort()
  await new Promise<void>((resolve) => silent.listen(port, '127.0.0.1', resolve))
  const away = [`127.0.0.1:${await freePort()}`, `127.0.0.1:${port}`]
  const [plain = ''] = server.brokers
  try {
    for (const brokers of [
      [...away, plain],
      [plain, ...away],
    ])
      await works(brokers, {}, 3_000)
    const error = await refusalOf(away, {}, 1_000)
    assert.match(error.message, /^kafka: none of 2 brokers answers \([^\n]*\); check brokers/)
  } finally {
    silent.close()
  }
})

type Case = readonly [code: string, address: string, connection: KafkaConnection, said: RegExp]

const secret = { mechanism: 'SCRAM-SHA-512', ...account } as const

function tlsCases(): readonly Case[] {
  const { account: strict, open, mutual } = server
  const { key } = made.client
  const foreign = { ...tls(), cert: made.server.cert, key }
  return [
    ['UNAVAILABLE', strict, { tls: true, sasl: secret }, /does not trust .*; pass .* as ca/],
    ['UNAVAILABLE', strict, { sasl: secret }, /connection: { tls|connection\.tls/],
    ['UNAVAILABLE', strict, {}, /connection: { tls|connection\.tls/],
    ['UNAVAILABLE', open, {}, /closed the connection .*connection\.tls or connection\.sasl/],
    ['UNAVAILABLE', open, { tls: tls(), sasl: secret }, /may speak none: correct the port/],
    ['UNAVAILABLE', mutual, { tls: tls() }, /wants connection\.tls with cert and key/],
    ['UNAVAILABLE', mutual, { tls: foreign }, /cert and key do not belong together/],
  ]
}

function accountCases(): readonly Case[] {
  const at = server.account
  const plain = { mechanism: 'PLAIN', username: USER, password: 'falsch' } as const
  const broken = async (): Promise<string> => {
    throw new Error('the provider of tokens is away, password=falsch')
  }
  const bearer = (token: Secret): KafkaConnection => {
    return { tls: tls(), sasl: { mechanism: 'OAUTHBEARER', token } }
  }
  const scram = (more: object): KafkaConnection => ({ tls: tls(), sasl: { ...secret, ...more } })
  return [
    ['DENIED', at, { tls: tls(), sasl: plain }, /in by PLAIN; check username and password/],
    ['DENIED', at, scram({ password: 'falsch' }), /in by SCRAM-SHA-512; check username/],
    ['DENIED', at, scram({ username: 'nobody' }), /in by SCRAM-SHA-512; check username/],
    ['DENIED', at, bearer('falsch'), /in by OAUTHBEARER; check its token/],
    ['DENIED', at, bearer(unsignedToken(-60_000)), /in by OAUTHBEARER; check its token/],
    ['DENIED', at, bearer(broken), /a function of connection\.sasl gave nothing/],
  ]
}

async function awayCase(): Promise<Case> {
  const nobody = `localhost:${await freePort()}`
  return ['UNAVAILABLE', nobody, {}, /does not answer \(.*ECONNREFUSED.*\); check brokers/]
}

const opened = (
  brokers: string | readonly string[],
  connection: KafkaConnection,
  timeoutMs: number,
) => {
  queues += 1
  const orders = defineQueue({ name: `strict-${queues}`, owner: 'o', payload: z.string() })
  const transport = kafka({ brokers, connection, timeoutMs, retry: 'park', partitions: 1 })
  const parts = { queues: [orders], store: memoryStore(), logger: silentLogger }
  return { orders, opening: createMillrace({ transport, ...parts }) }
}

async function works(
  brokers: string | readonly string[],
  connection: KafkaConnection,
  timeoutMs = 10_000,
): Promise<void> {
  const { orders, opening } = opened(brokers, connection, timeoutMs)
  const app = await opening
  try {
    const seen: string[] = []
    app.work(orders, ({ payload }) => void seen.push(payload))
    await app.start()
    await app.send(orders, 'a book')
    await until('the order', () => seen.length === 1)
  } finally {
    await app.close({ timeoutMs: 5_000 })
  }
}

async function refusalOf(
  brokers: readonly string[],
  connection: KafkaConnection,
  timeoutMs = 5_000,
): Promise<Error> {
  const { opening } = opened(brokers, connection, timeoutMs)
  const error: unknown = await opening.then(
    (app) => app.close(),
    (refusal: unknown) => refusal,
  )
  assert.ok(error instanceof Error, `${brokers} was not refused`)
  return error
}
