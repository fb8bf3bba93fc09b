import type { Classification } from './classify.ts'
import type { Rule } from './classify-rule.ts'
import { read, readInteger, readList, readString } from './probe.ts'
import { THROTTLE_LIMIT_MS, usableDelayMs } from './retry.ts'
import { parseRetryAfter } from './retry-after.ts'

interface StatusRule {
  readonly code: number
  readonly name: string
  readonly errorClass: Classification['errorClass']
  readonly why: string
}

/** grpc.io, "Status codes and their use in gRPC". */
const rules: readonly StatusRule[] = [
  { code: 1, name: 'CANCELLED', errorClass: 'transient', why: 'the call was cancelled' },
  { code: 2, name: 'UNKNOWN', errorClass: 'transient', why: 'the server did not say what failed' },
  {
    code: 3,
    name: 'INVALID_ARGUMENT',
    errorClass: 'permanent',
    why: 'refused whatever the state of the server',
  },
  { code: 4, name: 'DEADLINE_EXCEEDED', errorClass: 'transient', why: 'no answer in time' },
  { code: 5, name: 'NOT_FOUND', errorClass: 'permanent', why: 'what it names is not there' },
  { code: 6, name: 'ALREADY_EXISTS', errorClass: 'permanent', why: 'it is there already' },
  {
    code: 7,
    name: 'PERMISSION_DENIED',
    errorClass: 'permanent',
    why: 'the caller may not do this',
  },
  {
    code: 8,
    name: 'RESOURCE_EXHAUSTED',
    errorClass: 'transient',
    why: 'a quota or a limit was reached',
  },
  {
    code: 9,
    name: 'FAILED_PRECONDITION',
    errorClass: 'permanent',
    why: 'must not be repeated before the state changes',
  },
  { code: 10, name: 'ABORTED', errorClass: 'transient', why: 'collided with another call' },
  { code: 11, name: 'OUT_OF_RANGE', errorClass: 'permanent', why: 'beyond the valid range' },
  {
    code: 12,
    name: 'UNIMPLEMENTED',
    errorClass: 'permanent',
    why: 'the server has no such method',
  },
  { code: 13, name: 'INTERNAL', errorClass: 'transient', why: 'the server failed inside' },
  { code: 14, name: 'UNAVAILABLE', errorClass: 'transient', why: 'the server is not there now' },
  { code: 15, name: 'DATA_LOSS', errorClass: 'permanent', why: 'data is lost for good' },
  { code: 16, name: 'UNAUTHENTICATED', errorClass: 'permanent', why: 'the caller is not known' },
]

/** Status numbers by name, for `millrace explain-error`. */
export const grpcStatuses: ReadonlyMap<string, number> = new Map(
  rules.map(({ name, code }) => [name, code]),
)

const TOLD_WHY = 'the server said when to come back'

export const grpcTable: readonly Rule[] = [
  {
    family: 'gRPC',
    match: '8, 14 with RetryInfo or grpc-retry-pushback-ms',
    errorClass: 'throttled',
    why: TOLD_WHY,
  },
  ...rules.map(({ code, name, errorClass, why }) => ({
    family: 'gRPC' as const,
    match: `${code} ${name}`,
    errorClass,
    why,
  })),
]

/** A small number in `code` is a gRPC status only with the fields that gRPC clients add to it. */
export function classifyGrpc(error: unknown, now: number): Classification | undefined {
  const status = readInteger(error, 'code')
  const rule = rules.find((r) => r.code === status)
  if (!rule || !isGrpc(error)) return undefined
  const code = `GRPC_${rule.name}`
  const told = rule.code === 8 || rule.code === 14 ? grpcDelayMs(error, now) : undefined
  if (told !== undefined) return { errorClass: 'throttled', code, why: TOLD_WHY, delayMs: told }
  return { errorClass: rule.errorClass, code, why: rule.why }
}

function isGrpc(error: unknown): boolean {
  return (
    typeof read(error, 'details') === 'string' ||
    readString(error, 'name') === 'ConnectError' ||
    typeof read(read(error, 'metadata'), 'get') === 'function'
  )
}

function grpcDelayMs(error: unknown, now: number): number | undefined {
  const pushback = metadata(error, 'grpc-retry-pushback-ms')
  if (pushback !== undefined && /^\d{1,15}$/.test(pushback))
    return Math.min(Number(pushback), THROTTLE_LIMIT_MS)
  return fromDetails(error) ?? parseRetryAfter(metadata(error, 'retry-after'), now)
}

function metadata(error: unknown, key: string): string | undefined {
  const held = read(error, 'metadata')
  const get = read(held, 'get')
  if (typeof get !== 'function') return undefined
  try {
    const found: unknown = get.call(held, key)
    const first: unknown = Array.isArray(found) ? found[0] : found
    return first === undefined || first === null ? undefined : String(first)
  } catch {
    return undefined
  }
}

const DETAILS_MAX = 20

/** RetryInfo as google-gax (`statusDetails`) and Connect (`details[].debug`) decode it. */
function fromDetails(error: unknown): number | undefined {
  const details =
    readList(error, 'statusDetails', DETAILS_MAX) ?? readList(error, 'details', DETAILS_MAX) ?? []
  for (const detail of details) {
    const ms = durationMs(read(detail, 'retryDelay') ?? read(read(detail, 'debug'), 'retryDelay'))
    if (ms !== undefined) return Math.min(ms, THROTTLE_LIMIT_MS)
  }
  return undefined
}

function durationMs(value: unknown): number | undefined {
  if (typeof value === 'string') {
    const seconds = /^(\d{1,12}(?:\.\d{1,9})?)s$/.exec(value)?.[1]
    return seconds === undefined ? undefined : Math.ceil(Number(seconds) * 1000)
  }
  const seconds = read(value, 'seconds')
  if (typeof seconds !== 'number' && typeof seconds !== 'string') return undefined
  return usableDelayMs(Number(seconds) * 1000 + Math.ceil((readInteger(value, 'nanos') ?? 0) / 1e6))
}
