import type { Classification } from './classify.ts'
import { type CodeRule, codeRulesAsTable, indexRules, type Rule } from './classify-rule.ts'
import { read, readString } from './probe.ts'
import { usableDelayMs } from './retry.ts'

/** Found by `code`, so that an error from another copy of the package counts too. */
const rules: readonly CodeRule[] = [
  {
    codes: ['MILLRACE_TRANSIENT'],
    errorClass: 'transient',
    why: 'the handler threw TransientError',
  },
  {
    codes: ['MILLRACE_PERMANENT'],
    errorClass: 'permanent',
    why: 'the handler threw PermanentError',
  },
  {
    codes: ['MILLRACE_THROTTLED'],
    errorClass: 'throttled',
    why: 'the handler threw ThrottledError',
  },
  {
    codes: ['MILLRACE_QUEUE_FULL'],
    errorClass: 'throttled',
    why: 'the queue that the handler sends to is full and said when to come back',
  },
  {
    codes: [
      'MILLRACE_INVALID_PAYLOAD',
      'MILLRACE_UNSERIALIZABLE_PAYLOAD',
      'MILLRACE_PAYLOAD_TOO_LARGE',
      'MILLRACE_IDEMPOTENCY_CONFLICT',
    ],
    errorClass: 'permanent',
    why: 'the same payload is refused every time',
  },
  {
    codes: [
      'MILLRACE_INVALID_OPTIONS',
      'MILLRACE_UNKNOWN_QUEUE',
      'MILLRACE_FOREIGN_TRANSACTION',
      'MILLRACE_INBOX_REQUIRED',
      'MILLRACE_TX_ASYNC',
      'MILLRACE_CONFIG',
      'MILLRACE_MISSING_CLIENT',
      'MILLRACE_UNSUPPORTED_NODE',
      'MILLRACE_REDRIVE_TOO_OLD',
    ],
    errorClass: 'permanent',
    why: 'the program or its configuration must change first; redrive afterwards',
  },
  {
    codes: ['MILLRACE_TX_ONCE'],
    errorClass: 'permanent',
    why: 'asked only when the first ctx.tx of the attempt committed nothing; after a commit the message is acked',
  },
  {
    codes: ['MILLRACE_ADDRESS_REFUSED'],
    errorClass: 'permanent',
    why: 'the address is not allowed as a target',
  },
  {
    codes: [
      'MILLRACE_OUTCOME_UNKNOWN',
      'MILLRACE_BATCH_PARTIAL',
      'MILLRACE_UNAVAILABLE',
      'MILLRACE_BACKEND_FAULT',
      'MILLRACE_DENIED',
      'MILLRACE_DISK_FULL',
      'MILLRACE_SCHEMA_OUTDATED',
      'MILLRACE_SCHEMA_TOO_NEW',
      'MILLRACE_CLOSED',
    ],
    errorClass: 'transient',
    why: 'the backend is not able to work now; the message is not at fault',
  },
  {
    codes: ['MILLRACE_HANDLER_TIMEOUT'],
    errorClass: 'transient',
    why: 'the handler took longer than handlerTimeoutMs',
  },
  {
    codes: [
      'MILLRACE_LEASE_LOST',
      'MILLRACE_SLOT_LOST',
      'MILLRACE_SHUTTING_DOWN',
      'MILLRACE_WORKER_LOST',
      'MILLRACE_CONTEXT_CLOSED',
    ],
    errorClass: 'transient',
    why: 'the run was cut short, whatever the handler did',
  },
]

const byCode = indexRules(rules)

export const ownTable: readonly Rule[] = codeRulesAsTable('Millrace', rules)

export function classifyOwn(error: unknown): Classification | undefined {
  const code = readString(error, 'code')
  const rule = code === undefined ? undefined : byCode.get(code)
  if (code === undefined || rule === undefined) return undefined
  const found = { errorClass: rule.errorClass, code: closerCode(error) ?? code, why: rule.why }
  const delayMs = usableDelayMs(read(error, delayField(rule.errorClass)))
  return delayMs === undefined ? found : { ...found, delayMs }
}

function delayField(errorClass: Classification['errorClass']): string {
  return errorClass === 'throttled' ? 'retryAfterMs' : 'delayMs'
}

/** `httpTarget` throws the three classes; what people want to see is the status behind them. */
function closerCode(error: unknown): string | undefined {
  const cause = read(error, 'cause')
  const code = readString(cause, 'code')
  if (code === 'MILLRACE_ADDRESS_REFUSED') return code
  const status = read(cause, 'status')
  return code === 'MILLRACE_HTTP_STATUS' && typeof status === 'number'
    ? `HTTP_${status}`
    : undefined
}
