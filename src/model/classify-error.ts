import type { Classification, Classify } from './classify.ts'
import { awsTable, classifyAws } from './classify-aws.ts'
import { classifyGrpc, grpcTable } from './classify-grpc.ts'
import { classifyHttp, httpTable } from './classify-http.ts'
import { classifyFetch, classifyNetwork, fetchRule, networkTable } from './classify-network.ts'
import { classifyOwn, ownTable } from './classify-own.ts'
import type { Classifier, Rule } from './classify-rule.ts'
import { classifySql, sqlTable } from './classify-sql.ts'
import { isThenable, unawaited } from './maybe-promise.ts'
import { read, readList, readString, safeCode } from './probe.ts'
import { show } from './problems.ts'
import { redact } from './redact.ts'
import { usableDelayMs } from './retry.ts'

const schemaRule: Rule = {
  family: 'schema',
  match: 'issues: [{ message }, …]',
  errorClass: 'permanent',
  why: 'the payload does not fit its schema and never will',
}

const syntaxRule: Rule = {
  family: 'JavaScript',
  match: 'SyntaxError, URIError',
  errorClass: 'permanent',
  why: 'the same text cannot be read the next time either',
}

const defaultRule: Rule = {
  family: 'default',
  match: 'anything else',
  errorClass: 'transient',
  why: 'no rule knows this error, so it is retried (the default)',
}

/** Every rule, in the order in which they are asked. Printed by `millrace explain-error` and in the guide. */
export const explainTable: readonly Rule[] = [
  ...ownTable,
  schemaRule,
  ...awsTable,
  ...grpcTable,
  ...httpTable,
  ...sqlTable,
  ...networkTable,
  syntaxRule,
  fetchRule,
  defaultRule,
]

/** AWS and gRPC errors carry an HTTP status too and know better, so they come first. */
const direct: readonly Classifier[] = [
  classifyOwn,
  classifySchema,
  classifyAws,
  classifyGrpc,
  classifyHttp,
  classifySql,
  classifyNetwork,
  classifySyntax,
]

function classifySchema(error: unknown): Classification | undefined {
  const first = readList(error, 'issues', 1)?.[0]
  if (typeof read(first, 'message') !== 'string') return undefined
  return { errorClass: 'permanent', code: 'SCHEMA_ISSUES', why: schemaRule.why }
}

function classifySyntax(error: unknown): Classification | undefined {
  const name = readString(error, 'name')
  if (name !== 'SyntaxError' && name !== 'URIError') return undefined
  return { errorClass: 'permanent', code: name, why: syntaxRule.why }
}

/** Errors looked at in one failure: the error, its causes, the members of aggregates. */
const LOOKED_AT_MAX = 16

/**
 * Decides what kind of failure `error` is: first the queue's own rules, then the table above, on the error, then on its
 * causes. Takes any value and never throws.
 * @param now epoch ms, for Retry-After dates
 * @param onBroken told when the queue's own rules threw, or gave what is no decision; the table decides then
 */
export function classifyError(
  error: unknown,
  custom: Classify | undefined,
  now: number,
  onBroken: (broken: BrokenClassify) => void = () => undefined,
): Classification {
  if (!custom) return classifyBuiltIn(error, now)
  const own = classifyCustom(error, custom)
  if (own !== undefined && 'errorClass' in own) return own
  const found = classifyBuiltIn(error, now)
  if (own === undefined) return found
  onBroken(own)
  return {
    ...found,
    why: `${found.why}; the queue's own classify ${SHORT[own.kind]} and was ignored`,
  }
}

/** What a queue's own `classify` did instead of deciding. */
export interface BrokenClassify {
  readonly kind: 'threw' | 'noClass'
  /** `threw (no such field)`, `gave "permanent"` */
  readonly what: string
}

const SHORT: Readonly<Record<BrokenClassify['kind'], string>> = {
  threw: 'threw',
  noClass: 'answered with no known errorClass',
}

function classifyBuiltIn(error: unknown, now: number): Classification {
  return walk(error, now, new Set()) ?? byDefault(error)
}

function walk(error: unknown, now: number, seen: Set<unknown>): Classification | undefined {
  if (typeof error !== 'object' || error === null) return undefined
  if (seen.has(error) || seen.size >= LOOKED_AT_MAX) return undefined
  seen.add(error)
  for (const classify of direct) {
    const found = classify(error, now)
    if (found) return found
  }
  const cause = read(error, 'cause')
  const below =
    walk(cause, now, seen) ?? worst(readList(error, 'errors', LOOKED_AT_MAX) ?? [], now, seen)
  if (below) return { ...below, why: `${below.why} (found in a cause)` }
  return classifyFetch(error)
}

/** Of several errors, one that may pass decides: an aggregate is permanent only when all that is known of it is. */
function worst(
  errors: readonly unknown[],
  now: number,
  seen: Set<unknown>,
): Classification | undefined {
  const found = errors.map((error) => walk(error, now, seen)).filter((c) => c !== undefined)
  return (
    found.find((c) => c.errorClass === 'throttled') ??
    found.find((c) => c.errorClass === 'transient') ??
    found[0]
  )
}

function byDefault(error: unknown): Classification {
  const code = safeCode(read(error, 'code')) ?? safeCode(read(error, 'name')) ?? 'UNKNOWN'
  return { errorClass: 'transient', code, why: defaultRule.why }
}

const CLASSES: readonly unknown[] = ['transient', 'permanent', 'throttled']
const WHY_MAX = 500

/** The queue's answer, undefined when it leaves it to us, or what was wrong with it. */
function classifyCustom(
  error: unknown,
  custom: Classify,
): Classification | BrokenClassify | undefined {
  try {
    const answer: unknown = custom(error)
    if (answer === undefined || answer === null) return undefined
    const errorClass = CLASSES.find((c) => c === read(answer, 'errorClass'))
    if (!errorClass) return { kind: 'noClass', what: `gave ${shown(answer)}` }
    const found: Classification = {
      errorClass: errorClass as Classification['errorClass'],
      code: safeCode(read(answer, 'code')) ?? byDefault(error).code,
      why: (readString(answer, 'why') ?? "the queue's own classify decided").slice(0, WHY_MAX),
    }
    const delayMs = usableDelayMs(read(answer, 'delayMs'))
    return delayMs === undefined ? found : { ...found, delayMs }
  } catch (cause) {
    const message = readString(cause, 'message') ?? 'no message'
    return {
      kind: 'threw',
      what: `threw (${redact((message.split('\n', 1)[0] ?? '').slice(0, 200))})`,
    }
  }
}

function shown(answer: unknown): string {
  unawaited(answer)
  if (isThenable(answer)) return 'a promise (it must answer at once)'
  const errorClass = read(answer, 'errorClass')
  return errorClass === undefined ? show(answer) : `errorClass ${show(errorClass)}`
}
