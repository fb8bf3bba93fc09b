import { hasCode, MillraceError } from '../../model/errors.ts'
import { isObject, read, readList, readString } from '../../model/probe.ts'
import { redact } from '../../model/redact.ts'
import { tlsRefusal } from '../../model/tls-refusal.ts'
import type { KafkaConnection } from './connection.ts'

/** Why no broker lets us in, in one line with what to do; undefined for what says it itself. */
export function connectRefusal(
  error: unknown,
  hosts: number,
  { tls, sasl }: KafkaConnection,
): MillraceError | undefined {
  const leaves = [...new Set(leavesOf(error))]
  const denied = leaves.map((leaf) => accountRefusal(leaf, error, sasl)).find(isFound)
  if (denied !== undefined) return denied
  const insecure = leaves.map((leaf) => tlsRefusal(leaf, 'kafka')).find(isFound)
  if (insecure !== undefined) return insecure
  const messages = leaves.map((leaf) => readString(leaf, 'message') ?? '')
  if (messages.some((message) => message.includes('Broker requires TLS'))) {
    return away(
      'what listens there speaks TLS; pass connection: { tls: { ca } }, or correct the port',
      error,
    )
  }
  if (messages.some((message) => message.includes('TLS handshake failed'))) {
    return away(
      'the connection ended in the handshake of TLS; what listens there may speak none: correct the port, or leave out connection.tls',
      error,
    )
  }
  if (messages.some((message) => message.includes('Connection closed'))) {
    const missing = [
      ...(!tls ? ['tls'] : tls === true || tls.cert === undefined ? ['tls with cert and key'] : []),
      ...(sasl === undefined ? ['sasl'] : []),
    ]
    const hint =
      missing.length === 0 ? '' : `, or it wants connection.${missing.join(' or connection.')}`
    return away(
      `the broker closed the connection without an answer; it is starting or stopping${hint}`,
      error,
    )
  }
  const isAway =
    leaves.some((leaf) => hasCode(leaf, 'MILLRACE_UNAVAILABLE')) ||
    messages.some((message) => AWAY.test(message))
  if (!isAway) return undefined
  const innermost = leaves.filter((leaf) => innerOf(leaf).length === 0)
  const said = [...new Set(innermost.map((leaf) => readString(leaf, 'message')))].join('; ')
  const whose = hosts === 1 ? 'the broker does not answer' : `none of ${hosts} brokers answers`
  return away(
    `${whose} (${redact(said)}); check brokers, the network, and that they run`,
    error,
    true,
  )
}

const AWAY =
  /timed out|ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|ETIMEDOUT|ECONNRESET/

function away(what: string, cause: unknown, retryable = false): MillraceError {
  return new MillraceError('MILLRACE_UNAVAILABLE', `kafka: ${what}`, { cause, retryable })
}

function isFound<T>(one: T | undefined): one is T {
  return one !== undefined
}

const UNSUPPORTED_MECHANISM = 33
const ILLEGAL_STATE = 34

function accountRefusal(
  leaf: unknown,
  cause: unknown,
  sasl: KafkaConnection['sasl'],
): MillraceError | undefined {
  const message = readString(leaf, 'message') ?? ''
  const mechanism = sasl?.mechanism ?? 'none'
  const denied = (what: string): MillraceError =>
    new MillraceError('MILLRACE_DENIED', `kafka: ${what}`, { cause })
  if (read(leaf, 'apiCode') === UNSUPPORTED_MECHANISM) {
    return denied(
      `the broker does not offer ${mechanism}; name another mechanism in connection.sasl`,
    )
  }
  if (message.includes('provider')) {
    return denied(
      `a function of connection.sasl gave nothing for ${mechanism} (${redact(message)})`,
    )
  }
  if (read(leaf, 'apiCode') === ILLEGAL_STATE && sasl === undefined) {
    return denied('the broker wants an account; pass connection.sasl')
  }
  const isRefused = read(leaf, 'apiCode') === ILLEGAL_STATE || SASL_FAILED.test(message)
  if (!isRefused) return undefined
  const secret = mechanism === 'OAUTHBEARER' ? 'its token' : 'username and password'
  return denied(
    `the broker does not let this account in by ${mechanism}; check ${secret} in connection.sasl`,
  )
}

const SASL_FAILED = /authentication failed|invalid_token/i

/** The client nests errors by `cause` and by `errors`. */
function leavesOf(error: unknown, depth = 8): readonly unknown[] {
  if (depth === 0 || !isObject(error)) return []
  return [...innerOf(error).flatMap((one) => leavesOf(one, depth - 1)), error]
}

function innerOf(error: unknown): readonly unknown[] {
  return [read(error, 'cause'), ...(readList(error, 'errors', 100) ?? [])].filter(isObject)
}
