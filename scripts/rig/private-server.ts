import { type ChildProcess, spawn } from 'node:child_process'
import { openSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { until } from './command.ts'
import { privateFolder, removeFolder } from './private-folder.ts'

/** `clean` asks the server to end (SIGTERM), `crash` does not ask (SIGKILL). */
export type Ending = 'clean' | 'crash'

/** A private server on loopback that a test may break. It keeps its port and its data until `stop`. */
export interface PrivateServer {
  readonly folder: string
  /** A clean one that takes longer than `limitMs` is killed; 20 s by default. */
  halt(how?: Ending, limitMs?: number): Promise<void>
  /** Starts again after `halt`. */
  resume(): Promise<void>
  restart(how?: Ending): Promise<void>
  /** Stops the process without closing a connection, as a frozen machine would. */
  freeze(): void
  thaw(): void
  /** Ends it and removes its data. Idempotent. */
  stop(): Promise<void>
}

export interface ServerProgram {
  /** For people. */
  readonly name: string
  readonly file: string
  /** The server's own folder is its working directory. */
  args(folder: string): readonly string[]
  env?(folder: string): NodeJS.ProcessEnv
  /** Writes what it needs into its folder, once. */
  prepare?(folder: string): void | Promise<void>
  /** Whether it answers a real request. */
  answers(): Promise<boolean>
  readonly readyMs?: number
}

const READY_MS = 30_000
const CLEAN_MS = 20_000

export async function startServer(program: ServerProgram): Promise<PrivateServer> {
  const folder = privateFolder(undefined)
  try {
    await program.prepare?.(folder)
    return handle(program, folder, await launch(program, folder))
  } catch (error) {
    removeFolder(folder)
    throw error
  }
}

function handle(program: ServerProgram, folder: string, first: ChildProcess): PrivateServer {
  let child = first
  let stopped: Promise<void> | undefined
  const halt: PrivateServer['halt'] = (how = 'clean', limitMs) => end(child, how, limitMs)
  const resume = async (): Promise<void> => {
    child = await launch(program, folder)
  }
  return {
    folder,
    halt,
    resume,
    restart: async (how) => {
      await halt(how)
      await resume()
    },
    freeze: () => void child.kill('SIGSTOP'),
    thaw: () => void child.kill('SIGCONT'),
    // Its data goes with it, so there is nothing to end cleanly for.
    stop: () => {
      stopped ??= end(child, 'crash').finally(() => removeFolder(folder))
      return stopped
    },
  }
}

async function launch(program: ServerProgram, folder: string): Promise<ChildProcess> {
  const log = join(folder, 'server.log')
  const output = openSync(log, 'a')
  // A process group of its own: Ctrl-C in a terminal must reach the tests first.
  const child = spawn(program.file, program.args(folder), {
    detached: true,
    stdio: ['ignore', output, output],
    cwd: folder,
    env: program.env?.(folder) ?? { PATH: process.env.PATH, HOME: folder, LC_ALL: 'C' },
  })
  child.unref()
  let failure: Error | undefined
  child.once('error', (error) => {
    failure = error
  })
  // What `sweep` looks for after a run that was killed.
  if (child.pid !== undefined) writeFileSync(join(folder, 'server.pid'), String(child.pid))
  try {
    await until(`${program.name} answering`, program.readyMs ?? READY_MS, async () => {
      if (failure !== undefined) throw failure
      if (hasEnded(child)) throw new Error(`${program.name} ended at start: ${tail(log)}`)
      return await program.answers()
    })
  } catch (error) {
    await end(child, 'crash')
    throw error
  }
  return child
}

async function end(child: ChildProcess, how: Ending, limitMs = CLEAN_MS): Promise<void> {
  if (hasEnded(child) || child.pid === undefined) return
  child.ref()
  const gone = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  child.kill('SIGCONT')
  child.kill(how === 'clean' ? 'SIGTERM' : 'SIGKILL')
  const last = setTimeout(() => child.kill('SIGKILL'), limitMs)
  await gone
  clearTimeout(last)
}

function hasEnded(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null
}

function tail(log: string): string {
  return readFileSync(log, 'utf8').trim().split('\n').slice(-3).join(' | ')
}
