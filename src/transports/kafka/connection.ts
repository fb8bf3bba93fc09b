import type { ConnectionOptions as TlsOptions } from 'node:tls'
import { isObject, read } from '../../model/probe.ts'
import { type Problems, show } from '../../model/problems.ts'

/** How each connection to a broker is made. */
export interface KafkaConnection {
  /** TLS with the authorities that Node knows (`true`), or with options of Node's `tls.connect`: `ca`, `cert`, `key`, … */
  readonly tls?: boolean | TlsOptions
  /** Who we are. PLAIN and OAUTHBEARER send their secret as it is: only with `tls`. */
  readonly sasl?: KafkaSasl
  /** How long one connection may take to come about, in ms; 100 to 600,000. Default 10,000, less where many brokers are named. */
  readonly connectTimeoutMs?: number
}

/** A function is asked for each connection, and before the broker ends its session. */
export type Secret = string | (() => string | Promise<string>)

export type KafkaSasl =
  | {
      readonly mechanism: 'PLAIN' | 'SCRAM-SHA-256' | 'SCRAM-SHA-512'
      readonly username: Secret
      readonly password: Secret
    }
  | {
      readonly mechanism: 'OAUTHBEARER'
      /** A token of your identity provider, usually a function that renews it. */
      readonly token: Secret
      /** Extensions of the first message, by name. */
      readonly extensions?: Readonly<Record<string, string>>
    }

const MECHANISMS = ['PLAIN', 'SCRAM-SHA-256', 'SCRAM-SHA-512', 'OAUTHBEARER']

/** Shows no value: each may be a secret. */
export function checkConnection(found: Problems, connection: unknown): void {
  if (connection === undefined) return
  if (!isObject(connection)) {
    found.add(`connection: expected an object of options, got a ${typeof connection}`)
    return
  }
  found.knownKeys(connection, ['tls', 'sasl', 'connectTimeoutMs'], 'connection')
  const tls = read(connection, 'tls')
  if (tls !== undefined && typeof tls !== 'boolean' && !isObject(tls)) {
    found.add('connection.tls: expected true or the options of tls.connect (ca, cert, key)')
  }
  found.number('connection.connectTimeoutMs', read(connection, 'connectTimeoutMs'), {
    ...{ min: 100, max: 600_000, default: CONNECT_MS },
  })
  checkSasl(found, read(connection, 'sasl'))
}

function checkSasl(found: Problems, sasl: unknown): void {
  if (sasl === undefined) return
  if (!isObject(sasl)) {
    found.add(
      'connection.sasl: expected an object with mechanism, and username and password or token',
    )
    return
  }
  const within = 'connection.sasl'
  const mechanism = read(sasl, 'mechanism')
  if (typeof mechanism !== 'string' || !MECHANISMS.includes(mechanism)) {
    found.add(
      `${within}.mechanism: expected ${MECHANISMS.map(show).join(' or ')}, got ${show(mechanism)}`,
    )
    return
  }
  const isToken = mechanism === 'OAUTHBEARER'
  const secrets = isToken ? ['token'] : ['username', 'password']
  found.knownKeys(sasl, ['mechanism', ...secrets, ...(isToken ? ['extensions'] : [])], within)
  for (const name of secrets) {
    const secret = read(sasl, name)
    if ((typeof secret === 'string' && secret !== '') || typeof secret === 'function') continue
    found.add(`${within}.${name}: expected a text or a function that gives one, for ${mechanism}`)
  }
}

const CONNECT_MS = 10_000

/** As the client wants them. With many brokers, the time for all of them is shared, so that the last one gets its turn. */
export function clientConnection(
  { tls, sasl, connectTimeoutMs }: KafkaConnection,
  timeoutMs: number,
  brokers: number,
): object {
  const share = Math.max(100, Math.floor(timeoutMs / (brokers + 1)))
  return {
    connectTimeout: connectTimeoutMs ?? Math.min(CONNECT_MS, share),
    ...(tls === undefined || tls === false ? {} : { tls: tls === true ? {} : tls }),
    ...(sasl === undefined ? {} : { sasl: clientSasl(sasl) }),
  }
}

function clientSasl(sasl: KafkaSasl): object {
  if (sasl.mechanism !== 'OAUTHBEARER') return sasl
  const { mechanism, token, extensions } = sasl
  return {
    ...{ mechanism, token, authBytesValidator: refusedToken },
    ...(extensions && { oauthBearerExtensions: extensions }),
  }
}

/** A broker that does not take a token says so without an error, and fails what comes next. */
function refusedToken(
  answer: Buffer,
  callback: (error: Error | null, bytes?: Buffer) => void,
): void {
  const status =
    answer.length === 0 ? undefined : /"status"\s*:\s*"(\w+)"/.exec(answer.toString())?.[1]
  if (status === undefined) callback(null, answer)
  else callback(new Error(`the token is refused: ${status}`))
}
