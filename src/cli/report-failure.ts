import { classifyError, explainTable } from '../model/classify-error.ts'
import { messageOfError } from '../model/describe-error.ts'
import type { ErrorCode } from '../model/errors.ts'
import { readString } from '../model/probe.ts'
import { redact } from '../model/redact.ts'
import { type ExitCode, FAILED, WRONG_USE } from './exit-code.ts'
import type { Output } from './output.ts'
import { oneLine, terminalText } from './terminal-text.ts'
import { UsageError } from './usage-error.ts'

/** What only a change of the command, the config file or the installation can mend. */
const WRONG: ReadonlySet<string> = new Set<ErrorCode>([
  'MILLRACE_INVALID_OPTIONS',
  'MILLRACE_UNKNOWN_QUEUE',
  'MILLRACE_CONFIG',
  'MILLRACE_MISSING_CLIENT',
  'MILLRACE_UNSUPPORTED_NODE',
])

const LINE_MAX = 2_000

/** One line on stderr, secrets taken out; a stack only when asked for. `remark` says what was done all the same. */
export function reportFailure(error: unknown, out: Output, remark?: string): ExitCode {
  const code = codeOf(error)
  const known =
    error instanceof UsageError || code?.startsWith('MILLRACE_') === true || isNamed(error)
  const message = oneLine(messageOfError(error), LINE_MAX)
  const exitCode = error instanceof UsageError || WRONG.has(code ?? '') ? WRONG_USE : FAILED
  if (out.json) {
    out.note(
      JSON.stringify({
        error: { code: code ?? (known ? 'USAGE' : 'UNEXPECTED'), message, exitCode, remark },
      }),
    )
  } else if (known) {
    out.note(`millrace: ${message}${code === undefined ? '' : ` [${code}]`}`)
  } else {
    const hint = out.verbose ? '' : '; --verbose shows where'
    out.note(
      `millrace: unexpected failure: ${message}${code === undefined ? '' : ` [${code}]`}${hint}`,
    )
  }
  if (remark !== undefined && !out.json) out.note(`millrace: ${remark}`)
  if (out.verbose) out.note(stackOf(error))
  return exitCode
}

/** Refused connections, wrong passwords: what the table of rules knows is no surprise. */
function isNamed(error: unknown): boolean {
  return classifyError(error, undefined, 0).why !== explainTable.at(-1)?.why
}

function codeOf(error: unknown): string | undefined {
  const code = readString(error, 'code')
  return code === undefined ? undefined : oneLine(redact(code), 100)
}

function stackOf(error: unknown): string {
  const lines: string[] = []
  let at: unknown = error
  for (let depth = 0; depth < 4 && at !== undefined && at !== null; depth++) {
    const stack = readString(at, 'stack') ?? messageOfError(at)
    lines.push(`${depth === 0 ? '' : 'caused by '}${terminalText(redact(stack))}`)
    at = at instanceof Error ? at.cause : undefined
  }
  return lines.join('\n')
}
