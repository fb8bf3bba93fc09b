import { classifyError, explainTable } from '../model/classify-error.ts'
import { grpcStatuses } from '../model/classify-grpc.ts'
import { nearest } from '../model/nearest.ts'
import { errorNamed } from './error-named.ts'
import { UsageError } from './usage-error.ts'

/** What the user typed, as the value that a handler would have thrown. */
export interface GivenError {
  readonly error: unknown
  /** How it was understood. */
  readonly readAs: string
}

type Headers = Readonly<Record<string, string>>

const CODE = /^[A-Za-z][A-Za-z0-9_.:-]{2,63}$/
const SQLSTATE = /^(?=.*\d)[0-9A-Z]{5}$/

/** @throws UsageError for numbers that are no HTTP status of a failure, and for broken JSON. */
export function errorFromText(text: string, headers: Headers): GivenError {
  const trimmed = text.trim()
  if (trimmed === '') throw new UsageError('explain-error: the error is empty')
  if (trimmed.startsWith('{')) return fromJson(trimmed, headers)
  const status = /^(?:HTTP[_ -]?)?(\d{1,4})$/i.exec(trimmed)?.[1]
  if (status !== undefined) {
    checkStatus(Number(status))
    return { error: errorNamed(status, headers), readAs: 'an HTTP status' }
  }
  const grpc = grpcStatuses.get(trimmed.toUpperCase())
  if (grpc !== undefined) {
    return { error: errorNamed(`GRPC_${grpc}`, headers), readAs: 'a gRPC status' }
  }
  if (SQLSTATE.test(trimmed)) return fromCode(trimmed, 'SQLSTATE', 'a SQLSTATE', headers)
  if (CODE.test(trimmed)) return fromCode(trimmed, 'code', 'an error code or name', headers)
  return fromProse(trimmed)
}

/** A misspelt code gets the default like a strange one, so a person must be told that no rule knows it. */
function fromCode(code: string, kind: string, known: string, headers: Headers): GivenError {
  const error = errorNamed(code, headers)
  if (isKnown(error)) return { error, readAs: known }
  const near = nearestCode(code, knownCodes())
  const hint = near === undefined ? '' : `, did you mean ${near}?`
  return { error, readAs: `an unknown ${kind}${hint}` }
}

const OURS = 'MILLRACE_'

/** Without the beginning that all of ours share, which would make any two of them near. */
function nearestCode(code: string, known: readonly string[]): string | undefined {
  if (!code.startsWith(OURS)) return nearest(code, known)
  const ours = known.filter((one) => one.startsWith(OURS)).map((one) => one.slice(OURS.length))
  const near = nearest(code.slice(OURS.length), ours)
  return near === undefined ? undefined : `${OURS}${near}`
}

/** The codes and names in the table of rules: whatever stands there as one word and classifies by itself. */
function knownCodes(): readonly string[] {
  return explainTable
    .flatMap(({ match }) => match.match(/[A-Za-z][\w$]{3,63}/g) ?? [])
    .filter((word) => isKnown(errorNamed(word)))
}

const CODE_IN_TEXT = /\b(?:[A-Z][A-Z0-9_]{4,40}|[A-Z][A-Za-z]{4,40}(?:Exception|Error))\b/g
const WORDS_MAX = 20

/** A line out of a log often names the code that the error had. */
function fromProse(text: string): GivenError {
  const words = (text.match(CODE_IN_TEXT) ?? []).slice(0, WORDS_MAX)
  const code = words.find((word) => isKnown(errorNamed(word)))
  if (code !== undefined) {
    return { error: errorNamed(code), readAs: `the text of an error, with the code ${code} in it` }
  }
  const [, name, message] = /^(?:Uncaught )?([A-Z]\w{2,60}): ([\s\S]*)$/.exec(text) ?? []
  if (name !== undefined) {
    return { error: { name, message }, readAs: `the text of an error named ${name}` }
  }
  return { error: new Error(text), readAs: 'the text of an error' }
}

function isKnown(error: unknown): boolean {
  return classifyError(error, undefined, 0).why !== explainTable.at(-1)?.why
}

function fromJson(text: string, headers: Headers): GivenError {
  const readAs = 'an error as JSON'
  try {
    // The text begins with a brace, so what parses is an object.
    const error = JSON.parse(text) as Record<string, unknown>
    return { error: Object.keys(headers).length > 0 ? { ...error, headers } : error, readAs }
  } catch (cause) {
    throw new UsageError(`explain-error: this begins like JSON and is none (${String(cause)})`, {
      cause,
    })
  }
}

function checkStatus(status: number): void {
  if (status < 100 || status > 599) {
    throw new UsageError(`explain-error: ${status} is no HTTP status (100 to 599)`)
  }
  if (status < 300) {
    throw new UsageError(
      `explain-error: status ${status} is no failure; the message would be acked`,
    )
  }
}
