import { pbkdf2Sync, randomBytes } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { alterUserScramCredentialsV0, Producer } from '@platformatic/kafka'
import { freePort } from '../../scripts/rig/command.ts'
import { type Kafka, startKafka } from '../../scripts/rig/kafka-server.ts'
import type { Certificates } from './certificates.ts'

/** A broker with listeners beside its plain one: an account over TLS, the same without TLS, and a certificate of the client. */
export interface StrictKafka extends Kafka {
  readonly account: string
  readonly open: string
  readonly mutual: string
}

export const USER = 'app'
export const PASSWORD = 'geheim'

export async function startStrictKafka(made: Certificates): Promise<StrictKafka> {
  const ports = { account: await freePort(), open: await freePort(), mutual: await freePort() }
  const keyStore = join(made.caFile, '..', 'kafka.pem')
  const pem = [await readFile(made.server.keyFile), await readFile(made.server.certFile)]
  await writeFile(keyStore, Buffer.concat(pem))
  const server = await startKafka({
    config: ({ port, controllerPort }) => {
      const listeners = `PLAINTEXT://127.0.0.1:${port},ACCOUNT://127.0.0.1:${ports.account},OPEN://127.0.0.1:${ports.open},MUTUAL://127.0.0.1:${ports.mutual}`
      return [
        `listeners=${listeners},CONTROLLER://127.0.0.1:${controllerPort}`,
        // By name, which the certificate has.
        `advertised.listeners=${listeners.replaceAll('127.0.0.1', 'localhost')}`,
        'listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,ACCOUNT:SASL_SSL,OPEN:SASL_PLAINTEXT,MUTUAL:SSL',
        'ssl.keystore.type=PEM',
        `ssl.keystore.location=${keyStore}`,
        'ssl.truststore.type=PEM',
        `ssl.truststore.location=${made.caFile}`,
        'listener.name.mutual.ssl.client.auth=required',
        'sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER',
        ...['account', 'open'].flatMap(accounts),
      ]
    },
  })
  try {
    await addScram(server.brokers)
  } catch (error) {
    await server.stop()
    throw error
  }
  return {
    ...server,
    account: `localhost:${ports.account}`,
    open: `localhost:${ports.open}`,
    mutual: `localhost:${ports.mutual}`,
  }
}

const SECURITY = 'org.apache.kafka.common.security'

function accounts(listener: string): readonly string[] {
  const module = (mechanism: string, named: string): string =>
    `listener.name.${listener}.${mechanism}.sasl.jaas.config=${SECURITY}.${named};`
  return [
    module('plain', `plain.PlainLoginModule required user_${USER}="${PASSWORD}"`),
    module('scram-sha-256', 'scram.ScramLoginModule required'),
    module('scram-sha-512', 'scram.ScramLoginModule required'),
    module(
      'oauthbearer',
      'oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="broker"',
    ),
  ]
}

async function addScram(brokers: readonly string[]): Promise<void> {
  const client = new Producer({ clientId: 'test', bootstrapBrokers: [...brokers] })
  const metadata = await client.metadata({ topics: [] })
  const [broker] = metadata.brokers.values()
  if (broker === undefined) throw new Error('no broker is known')
  const connection = await client.connections.get(broker)
  const iterations = 4_096
  // One after the other: a request may name an account once.
  for (const mechanism of [1, 2]) {
    const [digest, length] = mechanism === 1 ? (['sha256', 32] as const) : (['sha512', 64] as const)
    const salt = randomBytes(16)
    const saltedPassword = pbkdf2Sync(PASSWORD, salt, iterations, length, digest)
    const added = { name: USER, mechanism, iterations, salt, saltedPassword }
    await alterUserScramCredentialsV0.api.async(connection, [], [added])
  }
  await client.close()
}

/** Of the kind that a broker takes without an identity provider. */
export function unsignedToken(lifeMs: number): string {
  const now = Math.floor(Date.now() / 1_000)
  const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')
  const claims = { sub: USER, iat: now - 60, exp: now + Math.floor(lifeMs / 1_000) }
  return `${part({ alg: 'none' })}.${part(claims)}.`
}
