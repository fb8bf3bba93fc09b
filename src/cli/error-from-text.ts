import { classifyError, explainTable } from '../model/classify-error.ts'
import { grpcStatuses } from '../model/classify-grpc.ts'
import { UsageError } from './usage-error.ts'

/** What the user typed, as the value that a handler would have thrown. */
export interface GivenError {
  readonly error: unknown
  /** How it was understood. */
  readonly readAs: string
}

const CODE = /^[A-Za-z][A-Za-z0-9_.:-]{2,63}$/
const SQLSTATE = /^(?=.*\d)[0-9A-Z]{5}$/

/** @throws UsageError for numbers that are no HTTP status and for broken JSON. */
export function errorFromText(text: string, headers: Readonly<Record<string, string>>): GivenError {
  const trimmed = text.trim()
  const withHeaders = Object.keys(headers).length > 0 ? { headers } : {}
  if (trimmed === '') throw new UsageError('explain-error: the error is empty')
  if (trimmed.startsWith('{'))
    return { error: { ...fromJson(trimmed), ...withHeaders }, readAs: 'an error as JSON' }
  if (/^\d{1,4}$/.test(trimmed)) return fromStatus(Number(trimmed), withHeaders)
  if (SQLSTATE.test(trimmed)) {
    return {
      error: { code: trimmed, severity: 'ERROR', message: `SQLSTATE ${trimmed}` },
      readAs: 'a SQLSTATE',
    }
  }
  const grpc = grpcStatuses.get(trimmed.toUpperCase())
  if (grpc !== undefined) {
    return {
      error: { code: grpc, details: '', message: `${grpc} ${trimmed}` },
      readAs: 'a gRPC status',
    }
  }
  if (CODE.test(trimmed)) {
    return {
      error: { code: trimmed, name: trimmed, message: trimmed, ...withHeaders },
      readAs: 'an error code or name',
    }
  }
  return fromProse(trimmed)
}

const CODE_IN_TEXT = /\b(?:[A-Z][A-Z0-9_]{4,40}|[A-Z][A-Za-z]{4,40}(?:Exception|Error))\b/g
const WORDS_MAX = 20

/** A line out of a log often names the code that the error had. */
function fromProse(text: string): GivenError {
  const words = (text.match(CODE_IN_TEXT) ?? []).slice(0, WORDS_MAX)
  const code = words.find((word) => isKnown({ code: word, name: word }))
  if (code !== undefined) {
    return {
      error: { code, name: code, message: text },
      readAs: `the text of an error, with the code ${code} in it`,
    }
  }
  const [, name, message] = /^(?:Uncaught )?([A-Z]\w{2,60}): ([^]*)$/.exec(text) ?? []
  if (name !== undefined)
    return { error: { name, message }, readAs: `the text of an error named ${name}` }
  return { error: new Error(text), readAs: 'the text of an error' }
}

function isKnown(error: object): boolean {
  return classifyError(error, undefined, 0).why !== explainTable.at(-1)?.why
}

function fromJson(text: string): Record<string, unknown> {
  try {
    // The text begins with a brace, so what parses is an object.
    return JSON.parse(text) as Record<string, unknown>
  } catch (cause) {
    throw new UsageError(`explain-error: this begins like JSON and is none (${String(cause)})`, {
      cause,
    })
  }
}

function fromStatus(status: number, withHeaders: { readonly headers?: object }): GivenError {
  if (status < 100 || status > 599)
    throw new UsageError(`explain-error: ${status} is no HTTP status (100 to 599)`)
  if (status < 300)
    throw new UsageError(
      `explain-error: status ${status} is no failure; the message would be acked`,
    )
  return {
    error: { status, message: `status ${status}`, ...withHeaders },
    readAs: 'an HTTP status',
  }
}
