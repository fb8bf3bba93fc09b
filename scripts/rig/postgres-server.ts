import { type ChildProcess, spawn } from 'node:child_process'
import { openSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { type Account, giveTo, serverAccount } from './account.ts'
import { freePort, run, until } from './command.ts'
import { postgresBinaries, readableBinaries } from './postgres-binaries.ts'
import { privateFolder, removeFolder } from './private-folder.ts'

/** A private Postgres on loopback. Fault tests start their own, so that they may break it. */
export interface PostgresServer {
  readonly url: string
  readonly port: number
  readonly major: number
  /** Stops (`fast` ends sessions cleanly, `immediate` is a crash) and keeps the data and the port. */
  halt(how?: 'fast' | 'immediate'): Promise<void>
  /** Starts again after `halt`, on the same port. */
  resume(): Promise<void>
  restart(how?: 'fast' | 'immediate'): Promise<void>
  /** Stops every process of the server without closing a connection, as a frozen machine would. */
  freeze(): void
  thaw(): void
  /** Stops and removes everything. Idempotent. */
  stop(): Promise<void>
}

export interface PostgresOptions {
  /** The folder with bin/. Default: the npm binaries of the major version. */
  readonly native?: string
  /** More settings, as `name=value`. */
  readonly settings?: readonly string[]
  /** Its certificate and key; connections without TLS are taken, too. */
  readonly tls?: { readonly cert: Buffer; readonly key: Buffer }
}

const USER = 'postgres'
const READY_MS = 30_000
const STOP_MS = 15_000

/** Crash tests mean nothing without fsync, and it costs little here, so it stays on. */
const SETTINGS = [
  'listen_addresses=127.0.0.1',
  'unix_socket_directories=',
  'max_connections=300',
  'shared_buffers=128MB',
  'fsync=on',
  'synchronous_commit=on',
  'log_timezone=UTC',
  'timezone=UTC',
]

/** Starts Postgres of this major version, ready for queries. */
export async function startPostgres(
  major: number,
  options: PostgresOptions = {},
): Promise<PostgresServer> {
  const account = serverAccount()
  const native = options.native ?? (await postgresBinaries(major))
  const folder = privateFolder(account)
  try {
    const bin = join(readableBinaries(native, account, folder), 'bin')
    const data = join(folder, 'data')
    await initialise(bin, data, account)
    const tls = options.tls === undefined ? [] : certified(data, options.tls, account)
    const port = await freePort()
    const place = {
      bin,
      data,
      folder,
      port,
      account,
      settings: [...SETTINGS, ...tls, ...(options.settings ?? [])],
    }
    return await serve(place, major)
  } catch (error) {
    removeFolder(folder)
    throw error
  }
}

/** The server reads a key that nobody else can. */
function certified(
  data: string,
  { cert, key }: { readonly cert: Buffer; readonly key: Buffer },
  account: Account | undefined,
): readonly string[] {
  for (const [name, bytes] of [
    ['server.crt', cert],
    ['server.key', key],
  ] as const) {
    const file = join(data, name)
    writeFileSync(file, bytes, { mode: 0o600 })
    giveTo(account, file)
  }
  return ['ssl=on']
}

interface Place {
  readonly bin: string
  readonly data: string
  readonly folder: string
  readonly port: number
  readonly account: Account | undefined
  readonly settings: readonly string[]
}

async function initialise(bin: string, data: string, account: Account | undefined): Promise<void> {
  const args = [
    '-D',
    data,
    '-U',
    USER,
    '--auth=trust',
    '--encoding=UTF8',
    '--locale=C',
    '--no-sync',
  ]
  // initdb asks the environment for a home and a user; the account may have none.
  await run(join(bin, 'initdb'), args, {
    account,
    cwd: '/',
    env: { PATH: process.env.PATH, LC_ALL: 'C' },
  })
}

async function serve(place: Place, major: number): Promise<PostgresServer> {
  const url = `postgres://${USER}@127.0.0.1:${place.port}/postgres`
  let child = await launch(place, url)
  let stopped: Promise<void> | undefined
  const halt = async (how: 'fast' | 'immediate' = 'fast'): Promise<void> => await end(child, how)
  const resume = async (): Promise<void> => {
    child = await launch(place, url)
  }
  return {
    url,
    port: place.port,
    major,
    halt,
    resume,
    restart: async (how) => {
      await halt(how)
      await resume()
    },
    freeze: () => signalAll(child, 'SIGSTOP'),
    thaw: () => signalAll(child, 'SIGCONT'),
    stop: () => {
      stopped ??= halt('fast').finally(() => removeFolder(place.folder))
      return stopped
    },
  }
}

async function launch(place: Place, url: string): Promise<ChildProcess> {
  const log = join(place.folder, 'server.log')
  const output = openSync(log, 'a')
  const settings = [...place.settings, `port=${place.port}`].flatMap((setting) => ['-c', setting])
  // A process group of its own: Ctrl-C in a terminal must reach the tests first.
  const child = spawn(join(place.bin, 'postgres'), ['-D', place.data, ...settings], {
    detached: true,
    stdio: ['ignore', output, output],
    cwd: '/',
    env: { LC_ALL: 'C' },
    ...place.account,
  })
  child.unref()
  if (child.pid !== undefined) writeFileSync(join(place.folder, 'server.pid'), String(child.pid))
  try {
    await until(`postgres on port ${place.port} answering`, READY_MS, async () => {
      if (child.exitCode !== null) throw new Error(`postgres ended at start: ${tail(log)}`)
      return await answers(url)
    })
  } catch (error) {
    await end(child, 'immediate')
    throw error
  }
  return child
}

function tail(log: string): string {
  return readFileSync(log, 'utf8').trim().split('\n').slice(-3).join(' | ')
}

export async function answers(url: string): Promise<boolean> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 2_000 })
  client.on('error', () => {})
  try {
    await client.connect()
    await client.query('SELECT 1')
    return true
  } catch {
    return false
  } finally {
    await client.end().catch(() => {})
  }
}

async function end(child: ChildProcess, how: 'fast' | 'immediate'): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const gone = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  // Postgres reads SIGINT as fast and SIGQUIT as immediate shutdown (manual, Shutting Down the Server).
  signalAll(child, 'SIGCONT')
  child.kill(how === 'fast' ? 'SIGINT' : 'SIGQUIT')
  const last = setTimeout(() => signalAll(child, 'SIGKILL'), STOP_MS)
  await gone
  clearTimeout(last)
}

/** Backends are groups of their own in no version that we use: all share the postmaster's session, found in /proc. */
function signalAll(child: ChildProcess, signal: NodeJS.Signals): void {
  if (child.pid === undefined || child.exitCode !== null) return
  try {
    for (const pid of [child.pid, ...childrenOf(child.pid)]) process.kill(pid, signal)
  } catch {
    // A backend ended in between.
  }
}

function childrenOf(pid: number): readonly number[] {
  const listed = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim()
  return listed === '' ? [] : listed.split(' ').map(Number)
}
