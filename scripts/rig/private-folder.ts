import {
  chmodSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Account, giveTo } from './account.ts'

const PREFIX = 'millrace-rig-'
const OWNER = 'owner.pid'

/** A folder for one server, readable by the account that runs it. Removed with `removeFolder`. */
export function privateFolder(account: Account | undefined): string {
  const folder = mkdtempSync(join(tmpdir(), PREFIX))
  writeFileSync(join(folder, OWNER), String(process.pid))
  chmodSync(folder, 0o700)
  giveTo(account, folder)
  return folder
}

export function removeFolder(folder: string): void {
  rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 })
}

/** Ends what a run left behind that was killed: servers in our own folders whose owner is gone. */
export function sweep(): readonly string[] {
  const swept: string[] = []
  for (const name of readdirSync(tmpdir())) {
    const folder = join(tmpdir(), name)
    if (!name.startsWith(PREFIX) || !isOrphan(folder)) continue
    for (const [pid, signal] of serverPids(folder)) endIfOurs(pid, signal, folder)
    removeFolder(folder)
    swept.push(folder)
  }
  return swept
}

function isOrphan(folder: string): boolean {
  const pid = readPid(join(folder, OWNER))
  return pid !== undefined && !isAlive(pid)
}

/** Postgres takes its children along at SIGQUIT. The others may take that for a wish to see their stacks. */
function serverPids(folder: string): ReadonlyMap<number, NodeJS.Signals> {
  const pids = new Map<number, NodeJS.Signals>()
  const server = readPid(join(folder, 'server.pid'))
  if (server !== undefined) pids.set(server, 'SIGKILL')
  const postmaster = readPid(join(folder, 'data', 'postmaster.pid'))
  if (postmaster !== undefined) pids.set(postmaster, 'SIGQUIT')
  return pids
}

/** A process id may have been given to another process since: it must work in our folder, or be called with it. */
function endIfOurs(pid: number, signal: NodeJS.Signals, folder: string): void {
  try {
    const called = readFileSync(`/proc/${pid}/cmdline`, 'utf8')
    if (!called.includes(folder) && readlinkSync(`/proc/${pid}/cwd`) !== folder) return
    process.kill(pid, signal)
    // It may have been frozen.
    process.kill(pid, 'SIGCONT')
    waitForEnd(pid)
  } catch {
    // It is gone already, which is what we want.
  }
}

/** One that still writes would leave a folder behind that is half removed; 15 s are for a busy machine. A zombie has no command line any more. */
function waitForEnd(pid: number): void {
  const pause = new Int32Array(new SharedArrayBuffer(4))
  for (let n = 0; n < 600 && readFileSync(`/proc/${pid}/cmdline`).length > 0; n++) {
    Atomics.wait(pause, 0, 0, 25)
  }
}

function readPid(file: string): number | undefined {
  try {
    const pid = Number.parseInt(readFileSync(file, 'utf8'), 10)
    return Number.isInteger(pid) && pid > 0 ? pid : undefined
  } catch {
    return undefined
  }
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM'
  }
}
