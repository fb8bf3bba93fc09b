import { chownSync, readFileSync } from 'node:fs'

/** Database servers refuse to run as root; this is who runs them then. Undefined: we are not root. */
export interface Account {
  readonly uid: number
  readonly gid: number
}

const NOBODY: Account = { uid: 65_534, gid: 65_534 }

export function serverAccount(): Account | undefined {
  if (process.getuid?.() !== 0) return undefined
  const lines = readFileSync('/etc/passwd', 'utf8').split('\n')
  const find = (name: string): Account | undefined => {
    const fields = lines.find((line) => line.startsWith(`${name}:`))?.split(':')
    return fields && { uid: Number(fields[2]), gid: Number(fields[3]) }
  }
  return find('nobody') ?? find('postgres') ?? NOBODY
}

export function giveTo(account: Account | undefined, path: string): void {
  if (account) chownSync(path, account.uid, account.gid)
}
