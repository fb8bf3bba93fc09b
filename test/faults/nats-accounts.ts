import { nkeys } from '@nats-io/transport-node'

/** What `nsc` makes of an operator: lines for the server's configuration, and the credentials file of one user. */
export interface NatsAccounts {
  readonly config: readonly string[]
  readonly creds: Uint8Array
}

type Pair = ReturnType<typeof nkeys.createUser>

/** An operator, an account that may use JetStream, and a user of it, each signed by the one before. */
export function natsAccounts(): NatsAccounts {
  const [operator, account, user] = [
    nkeys.createOperator(),
    nkeys.createAccount(),
    nkeys.createUser(),
  ]
  // JetStream does not start without one.
  const system = nkeys.createAccount()
  const limits = {
    ...{ subs: -1, data: -1, payload: -1, imports: -1, exports: -1, conn: -1, leaf: -1 },
    ...{ wildcards: true, mem_storage: -1, disk_storage: -1, streams: -1, consumer: -1 },
  }
  const operators = signed(operator, operator, 'operator', {})
  const accounts = signed(operator, account, 'account', { limits })
  const systems = signed(operator, system, 'account', {})
  const users = signed(account, user, 'user', { subs: -1, data: -1, payload: -1, pub: {}, sub: {} })
  const seed = new TextDecoder().decode(user.getSeed())
  const part = (name: string, text: string): string =>
    `-----BEGIN ${name}-----\n${text}\n------END ${name}------\n`
  return {
    config: [
      `system_account: ${system.getPublicKey()}`,
      `operator: ${operators}`,
      'resolver: MEMORY',
      `resolver_preload: { ${account.getPublicKey()}: ${accounts}, ${system.getPublicKey()}: ${systems} }`,
    ],
    creds: new TextEncoder().encode(
      `${part('NATS USER JWT', users)}\n${part('USER NKEY SEED', seed)}`,
    ),
  }
}

/** A JWT as NATS has them: signed with Ed25519 by the key of whoever stands above. */
function signed(issuer: Pair, subject: Pair, type: string, more: object): string {
  const claims = {
    jti: `${type}-${subject.getPublicKey()}`,
    iat: Math.floor(Date.now() / 1_000),
    iss: issuer.getPublicKey(),
    name: type,
    sub: subject.getPublicKey(),
    nats: { ...more, type, version: 2 },
  }
  const encoded = (value: object): string =>
    Buffer.from(JSON.stringify(value)).toString('base64url')
  const text = `${encoded({ typ: 'JWT', alg: 'ed25519-nkey' })}.${encoded(claims)}`
  const signature = Buffer.from(issuer.sign(new TextEncoder().encode(text)))
  return `${text}.${signature.toString('base64url')}`
}
