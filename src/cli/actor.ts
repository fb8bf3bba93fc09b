import { userInfo } from 'node:os'
import type { CliIo } from './io.ts'

/** Who is named in the audit log: as the environment says, which sudo and containers may leave empty, else as the system does. */
export function actorOf({ env }: Pick<CliIo, 'env'>): string {
  const user = env['USER'] || env['LOGNAME'] || userOfSystem()
  return `cli:${user.slice(0, 100)}`
}

/** A container may run as a user id that no account has, and then there is no name. */
function userOfSystem(): string {
  try {
    return userInfo().username
  } catch {
    return `uid ${process.getuid?.() ?? 'unknown'}`
  }
}
