import type { Call } from './command.ts'
import { DONE, type ExitCode, FAILED } from './exit-code.ts'

/** Ends a command that shows one thing. In JSON what is not there is null, so that a script always reads a value. */
export function showOne<T>(
  { out }: Call,
  found: T | null,
  missing: string,
  text: (found: T, verbose: boolean) => readonly string[],
): ExitCode {
  if (found === null) out.note(`millrace: ${missing}`)
  if (out.json) out.data(found)
  else if (found !== null) for (const line of text(found, out.verbose)) out.line(line)
  return found === null ? FAILED : DONE
}
