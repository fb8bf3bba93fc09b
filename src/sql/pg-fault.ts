import { hasCode } from '../model/errors.ts'
import type { Fault, FaultCode } from '../model/fault.ts'
import { isObject, readString } from '../model/probe.ts'

/** Errors that came before any statement was sent, so that nothing can have happened. */
const early = new WeakSet<object>()

/** Remembers that this error came while connecting; answers it. */
export function beforeStatement(error: unknown): unknown {
  if (typeof error === 'object' && error !== null) early.add(error)
  return error
}

interface Kind {
  readonly code: FaultCode
  readonly retryable: boolean
  /** The connection was lost while a statement may have run. */
  readonly unknown?: boolean
}

const gone: Kind = { code: 'unavailable', retryable: true, unknown: true }
const away: Kind = { code: 'unavailable', retryable: true }
const denied: Kind = { code: 'denied', retryable: false }
const invalid: Kind = { code: 'invalid', retryable: false }
const notFound: Kind = { code: 'notFound', retryable: false }

/** SQLSTATE or its class, PostgreSQL manual, appendix A; the longest match decides. */
const states: Readonly<Record<string, Kind>> = {
  '08': gone,
  '57': away,
  '57P01': gone,
  '57P02': gone,
  '57P05': gone,
  '53': away,
  '55': away,
  '40': away,
  '40003': gone,
  '25006': away,
  '25P03': away,
  '26': away,
  '28': denied,
  '42501': denied,
  '3D': notFound,
  '3F': notFound,
  '42P01': notFound,
  '22': invalid,
  '23': invalid,
  '54': { code: 'tooLarge', retryable: false },
  '58': away,
}

/** Codes of Node and of postgres.js. */
const codes: Readonly<Record<string, Kind>> = {
  ECONNREFUSED: away,
  ENOTFOUND: away,
  EAI_AGAIN: away,
  EHOSTUNREACH: away,
  ENETUNREACH: away,
  ENOENT: away,
  ECONNRESET: gone,
  ECONNABORTED: gone,
  EPIPE: gone,
  ETIMEDOUT: gone,
  CONNECT_TIMEOUT: away,
  CONNECTION_CLOSED: gone,
  CONNECTION_DESTROYED: gone,
  CONNECTION_ENDED: { code: 'unavailable', retryable: false },
  MILLRACE_CLOSED: { code: 'unavailable', retryable: false },
  MILLRACE_UNAVAILABLE: gone,
  MILLRACE_DENIED: denied,
}

/**
 * node-postgres gives no code to a connection that ended under it. Nor to a statement for which its `query_timeout` has waited long
 * enough: that one goes on, and whoever gets the connection next waits behind it.
 */
const lostMessage =
  /connection terminated|not queryable|connection error|timeout exceeded when trying to connect|query read timeout/i

/** What an error of a Postgres client means. Never throws. */
export function pgFault(error: unknown): Fault {
  const kind = kindOf(error)
  const known = isObject(error) && early.has(error)
  return {
    code: kind.code,
    retryable: kind.retryable,
    outcome: kind.unknown && !known ? 'unknown' : 'notApplied',
    cause: error,
  }
}

function kindOf(error: unknown): Kind {
  const code = readString(error, 'code')
  if (code !== undefined) {
    const byState = SQLSTATE.test(code) ? (states[code] ?? states[code.slice(0, 2)]) : undefined
    const found = codes[code] ?? byState
    if (found) return found
  }
  const message = readString(error, 'message')
  if (message !== undefined && lostMessage.test(message)) return gone
  return { code: 'unknown', retryable: false, unknown: !isServerError(error) }
}

const SQLSTATE = /^[0-9A-Z]{5}$/

/** The server answered, so that the statement did not take effect. */
function isServerError(error: unknown): boolean {
  return readString(error, 'severity') !== undefined || hasCode(error, 'MILLRACE_INVALID_OPTIONS')
}
