import { messageOfError } from '../model/describe-error.ts'
import type { Fault } from '../model/fault.ts'
import { cutToBytes } from '../model/redact.ts'

const REASON_MAX_BYTES = 500

/** What a row keeps of why it was not taken: the fault's code and the first line of its reason, redacted, on at most 500 bytes. */
export function reasonOf({ code, cause, id }: Fault): string {
  if (code === 'conflict' && id !== undefined) return `conflict: message ${id} has its key`
  if (cause === undefined) return code
  const line = messageOfError(cause).split('\n', 1)[0] ?? ''
  return cutToBytes(`${code}: ${line}`, REASON_MAX_BYTES)
}
