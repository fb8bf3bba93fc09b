import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type ErrorCode, MillraceError } from 'millrace'
import { output } from '../../src/cli/output.ts'
import { reportFailure } from '../../src/cli/report-failure.ts'
import { UsageError } from '../../src/cli/usage-error.ts'

function reported(error: unknown, how: { readonly json?: boolean; readonly verbose?: boolean }) {
  let text = ''
  const sink = { write: (more: string) => (text += more) }
  const io = { stdout: sink, stderr: sink, env: {}, cwd: '.', signal: AbortSignal.abort() }
  const code = reportFailure(error, output(io, { json: false, verbose: false, ...how }))
  return { code, text }
}

test('what only the command, its config or the installation can mend is wrong use, all else has failed', () => {
  const codes: Readonly<Partial<Record<ErrorCode, number>>> = {
    MILLRACE_INVALID_OPTIONS: 2,
    MILLRACE_UNKNOWN_QUEUE: 2,
    MILLRACE_CONFIG: 2,
    MILLRACE_MISSING_CLIENT: 2,
    MILLRACE_UNSUPPORTED_NODE: 2,
    MILLRACE_UNAVAILABLE: 1,
    MILLRACE_SCHEMA_OUTDATED: 1,
    MILLRACE_INVALID_PAYLOAD: 1,
  }
  for (const [code, expected] of Object.entries(codes)) {
    const found = reported(new MillraceError(code as ErrorCode, 'why'), {})
    assert.deepEqual(found, { code: expected, text: `millrace: why [${code}]\n` })
  }
  assert.equal(reported(new UsageError('no such option'), {}).code, 2)
  assert.equal(reported(new Error('a mistake of ours'), {}).code, 1)
})

test('a stack is shown when it is asked for, with that of the cause, and without secrets', () => {
  const cause = new Error('connect to postgres://ada:s3cret@db/x')
  const error = new MillraceError('MILLRACE_UNAVAILABLE', 'the backend is away', { cause })
  assert.doesNotMatch(reported(error, {}).text, /\n {4}at /)
  const { text } = reported(error, { verbose: true })
  assert.match(text, /^MillraceError: the backend is away\n {4}at /m)
  assert.match(text, /^caused by Error: connect to postgres:\/\/\[redacted\]@db\/x\n {4}at /m)
  assert.doesNotMatch(text, /s3cret/)
})
