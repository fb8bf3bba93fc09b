import { MillraceError } from '../model/errors.ts'
import type { Fault, FaultCode } from '../model/fault.ts'
import { read } from '../model/probe.ts'
import { redact } from '../model/redact.ts'

/** The connection failed a call, not the server. */
export class RedisConnectionError extends MillraceError {
  readonly outcome: Fault['outcome']

  constructor(message: string, outcome: Fault['outcome'], cause?: unknown) {
    super('MILLRACE_UNAVAILABLE', message, { retryable: true, cause })
    this.outcome = outcome
  }
}

interface Meaning {
  readonly code: FaultCode
  readonly retryable: boolean
}

const away: Meaning = { code: 'unavailable', retryable: true }
const denied: Meaning = { code: 'denied', retryable: false }

/** By the first word of an error that the server answers; none of them has let the command run. */
const MEANINGS: Readonly<Record<string, Meaning>> = {
  READONLY: away,
  LOADING: away,
  BUSY: away,
  MASTERDOWN: away,
  CLUSTERDOWN: away,
  MOVED: away,
  ASK: away,
  TRYAGAIN: away,
  MISCONF: away,
  NOREPLICAS: away,
  UNBLOCKED: away,
  OOM: { code: 'full', retryable: true },
  NOAUTH: denied,
  WRONGPASS: denied,
  NOPERM: denied,
  WRONGTYPE: { code: 'invalid', retryable: false },
  CROSSSLOT: { code: 'invalid', retryable: false },
  NOGROUP: { code: 'notFound', retryable: true },
}

export function redisFault(error: unknown): Fault {
  if (error instanceof RedisConnectionError) {
    return { ...away, outcome: error.outcome, cause: error }
  }
  const word = wordOf(error)
  const meaning = word === undefined ? undefined : MEANINGS[word]
  if (meaning !== undefined) return { ...meaning, outcome: 'notApplied', cause: error }
  return { code: 'unknown', retryable: false, outcome: 'unknown', cause: error }
}

/** The server's word for it; in a script Redis 6.2 puts its own words in front. */
export function wordOf(error: unknown): string | undefined {
  const message = read(error, 'message')
  if (typeof message !== 'string') return undefined
  return (
    /@user_script: ?\d+: -?([A-Z]{3,}) /.exec(message)?.[1] ?? /^([A-Z]{2,})\b/.exec(message)?.[1]
  )
}

/** Whether a server answered this; all else says that the connection failed. */
export function isReply(error: unknown): boolean {
  const word = wordOf(error)
  return word !== undefined && (word in MEANINGS || word === 'ERR' || word === 'NOSCRIPT')
}

/** Errors of the client that it throws before anything was sent, by the names of their classes. */
const NOT_SENT: readonly unknown[] = ['ClientOfflineError', 'ClientClosedError']

/** A failed call as this transport throws it: what a server answered stays as it is. */
export function callError(error: unknown, outcome: Fault['outcome']): unknown {
  if (error instanceof RedisConnectionError || isReply(error)) return error
  const why = error instanceof Error ? error.message || error.name : String(error)
  const unsent = NOT_SENT.includes(read(read(error, 'constructor'), 'name'))
  const message = `the connection to Redis failed (${redact(why)})`
  return new RedisConnectionError(message, unsent ? 'notApplied' : outcome, error)
}
