import { type ExitCode, FAILED } from './exit-code.ts'
import type { CliIo } from './io.ts'
import { main } from './main.ts'
import { output } from './output.ts'
import { reportFailure } from './report-failure.ts'
import { UsageError } from './usage-error.ts'

/** The command line of this process; what `bin/millrace.js` calls. Ends the process. */
export async function runProcess(): Promise<void> {
  const unwritten = new AbortController()
  process.stdout.on('error', (error) => tellUnwritten(error, 'standard output', unwritten))
  process.stderr.on('error', (error) => tellUnwritten(error, 'standard error', unwritten))
  const argv = process.argv.slice(2)
  const io: CliIo = {
    stdout: process.stdout,
    stderr: process.stderr,
    stdin: process.stdin,
    env: process.env,
    cwd: process.cwd(),
    // Signals are heard by the commands that can come to an end in good order; the others just end.
    signal: unwritten.signal,
  }
  process.once('beforeExit', () => {
    process.exitCode = endedEarly(argv, io)
  })
  const code = await main(argv, io)
  await Promise.all([flushed(process.stdout), flushed(process.stderr)])
  // A pool that the config file made, or a handler that hangs, must not keep a finished command alive.
  process.exit(unwritten.signal.aborted ? FAILED : code)
}

/** Node ends a process in which nothing can happen any more, with 0 and without a word. */
function endedEarly(argv: readonly string[], io: CliIo): ExitCode {
  const out = output(io, { json: argv.includes('--json'), verbose: argv.includes('--verbose') })
  return reportFailure(
    new UsageError(
      'the command waits for something that will never come; does the config file await what never settles?',
    ),
    out,
  )
}

/**
 * `millrace dlq ls q | head -1` closes the pipe early, which is no failure. A full disk is: nothing can be told there any more, and
 * the command comes to an end in good order, as what a worker has in hand is no less worth than with a signal.
 */
function tellUnwritten(
  error: NodeJS.ErrnoException,
  what: string,
  unwritten: AbortController,
): void {
  if (error.code === 'EPIPE' || unwritten.signal.aborted) return
  unwritten.abort()
  if (what !== 'standard error') {
    process.stderr.write(`millrace: ${what} cannot be written: ${error.message}\n`)
  }
}

function flushed(stream: NodeJS.WriteStream): Promise<void> {
  if (stream.destroyed || stream.writableEnded) return Promise.resolve()
  return new Promise((resolve) => stream.write('', () => resolve()))
}
