import { main } from './main.ts'

/** The command line of this process; what `bin/millrace.js` calls. Ends the process. */
export async function runProcess(): Promise<void> {
  for (const stream of [process.stdout, process.stderr]) stream.on('error', ignoreClosedPipe)
  const code = await main(process.argv.slice(2), {
    stdout: process.stdout,
    stderr: process.stderr,
    stdin: process.stdin,
    env: process.env,
    cwd: process.cwd(),
    // Signals are heard by the commands that can come to an end in good order; the others just end.
    signal: new AbortController().signal,
  })
  await Promise.all([flushed(process.stdout), flushed(process.stderr)])
  // A pool that the config file made, or a handler that hangs, must not keep a finished command alive.
  process.exit(code)
}

/** `millrace dlq ls q | head -1` closes the pipe early, which is no failure. */
function ignoreClosedPipe(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EPIPE') throw error
}

function flushed(stream: NodeJS.WriteStream): Promise<void> {
  if (stream.destroyed || stream.writableEnded) return Promise.resolve()
  return new Promise((resolve) => stream.write('', () => resolve()))
}
