import type { CliIo } from './io.ts'

/** Who is named in the audit log. */
export function actorOf({ env }: CliIo): string {
  const user = env['USER'] ?? env['LOGNAME']
  return user === undefined || user === '' ? 'cli' : `cli:${user.slice(0, 100)}`
}
