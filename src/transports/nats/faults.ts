import type { Fault, FaultCode } from '../../model/fault.ts'
import { read, readInteger, readString } from '../../model/probe.ts'

type Meaning = readonly [FaultCode, retryable: boolean, Fault['outcome']]

/** The client's errors by name: their classes belong to a package that may be there twice. */
const NAMES: Readonly<Record<string, Meaning>> = {
  // It may have been stored: the answer did not come.
  TimeoutError: ['unavailable', true, 'unknown'],
  ClosedConnectionError: ['unavailable', false, 'unknown'],
  DrainingConnectionError: ['unavailable', false, 'notApplied'],
  ConnectionError: ['unavailable', true, 'unknown'],
  ConnectionLostError: ['unavailable', true, 'unknown'],
  NoConnectionError: ['unavailable', true, 'notApplied'],
  NoRespondersError: ['unavailable', true, 'notApplied'],
  NoResponders: ['unavailable', true, 'notApplied'],
  PullError: ['unavailable', true, 'notApplied'],
  // The client's word for: nobody listens to the API.
  JetStreamNotEnabled: ['unavailable', true, 'notApplied'],
  StreamNotFoundError: ['notFound', false, 'notApplied'],
  ConsumerNotFoundError: ['notFound', false, 'notApplied'],
  AuthorizationError: ['denied', false, 'notApplied'],
  UserAuthenticationExpiredError: ['denied', false, 'notApplied'],
  PermissionViolationError: ['denied', false, 'notApplied'],
  InvalidSubjectError: ['invalid', false, 'notApplied'],
  InvalidArgumentError: ['invalid', false, 'notApplied'],
}

/** The server's own numbers (server/errors.json of nats-server). */
const CODES: Readonly<Record<number, Meaning>> = {
  10008: ['unavailable', true, 'notApplied'],
  10009: ['unavailable', true, 'notApplied'],
  10014: ['notFound', false, 'notApplied'],
  10023: ['full', true, 'notApplied'],
  10037: ['notFound', false, 'notApplied'],
  10039: ['denied', false, 'notApplied'],
  10047: ['full', true, 'notApplied'],
  10054: ['tooLarge', false, 'notApplied'],
  10059: ['notFound', false, 'notApplied'],
  10076: ['unavailable', true, 'unknown'],
  10077: ['full', true, 'notApplied'],
  10097: ['tooLarge', false, 'notApplied'],
  // In a cluster: the same id is just being stored.
  10158: ['unavailable', true, 'notApplied'],
}

export function natsFault(error: unknown): Fault {
  const chain = causesOf(error)
  // The server's number says more than the client's name for it.
  const numbers = chain.map((one) => CODES[readInteger(one, 'code') ?? 0])
  const names = chain.map((one) => NAMES[readString(one, 'name') ?? ''])
  const meaning = [...numbers, ...names].find((one) => one !== undefined)
  if (meaning !== undefined) return fault(meaning, error)
  return { code: 'unknown', retryable: true, outcome: 'unknown', cause: error }
}

function causesOf(error: unknown): readonly unknown[] {
  const chain: unknown[] = []
  for (let at = error; at != null && chain.length < CAUSES_MAX; at = read(at, 'cause')) {
    chain.push(at)
  }
  return chain
}

const CAUSES_MAX = 4

/** Somebody else is just storing this very message. */
export function isBeingStored(error: { readonly err_code?: number }): boolean {
  return error.err_code === 10158
}

/** Something else lies there than the sender expected: 10164 where a cluster is just agreeing on it. */
export function isOvertaken(error: { readonly err_code?: number }): boolean {
  return error.err_code === 10071 || error.err_code === 10164
}

/** The fault in an answer of JetStream that carries an error. */
export function answeredFault(error: {
  readonly err_code?: number
  readonly code: number
  readonly description?: string
}): Fault {
  const cause = new Error(error.description ?? `JetStream answered ${error.code}`)
  const meaning = CODES[error.err_code ?? 0]
  if (meaning !== undefined) return fault(meaning, cause)
  // 503 of a server that is just coming up or has no leader; everything else is about the request.
  return fault(
    error.code >= 500 ? ['unavailable', true, 'unknown'] : ['invalid', false, 'notApplied'],
    cause,
  )
}

function fault([code, retryable, outcome]: Meaning, cause: unknown): Fault {
  return { code, retryable, outcome, cause }
}

/** Nobody listens to the subject: the stream or consumer is not there, or not there yet. */
export function isNoResponders(error: unknown): boolean {
  return causesOf(error).some((one) =>
    ['NoResponders', 'NoRespondersError'].includes(readString(one, 'name') ?? ''),
  )
}
