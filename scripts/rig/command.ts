import { execFile } from 'node:child_process'
import { constants } from 'node:fs'
import { access } from 'node:fs/promises'
import { createServer } from 'node:net'
import { delimiter, join } from 'node:path'
import type { Account } from './account.ts'

export interface RunOptions {
  readonly cwd?: string
  readonly account?: Account | undefined
  readonly timeoutMs?: number
  readonly env?: NodeJS.ProcessEnv
}

/** Runs a command to its end; an error names the command and shows what it said. */
export function run(
  file: string,
  args: readonly string[],
  options: RunOptions = {},
): Promise<string> {
  const { cwd, account, timeoutMs = 120_000, env } = options
  return new Promise((resolve, reject) => {
    const settings = { cwd, timeout: timeoutMs, env: env ?? process.env, ...account }
    execFile(file, args, settings, (error, stdout, stderr) => {
      if (!error) return resolve(stdout)
      const said = stderr.trim().split('\n').slice(-5).join(' | ')
      reject(
        new Error(`${file} ${args.join(' ')} failed: ${said || error.message}`, { cause: error }),
      )
    })
  })
}

/** Where a program is on PATH or in one of `more`. */
export async function which(
  name: string,
  more: readonly string[] = [],
): Promise<string | undefined> {
  const folders = [...(process.env.PATH ?? '').split(delimiter), ...more]
  for (const folder of folders) {
    const path = join(folder, name)
    if (
      folder !== '' &&
      (await access(path, constants.X_OK).then(
        () => true,
        () => false,
      ))
    )
      return path
  }
  return undefined
}

const handedOut = new Set<number>()

/**
 * A port that nobody uses now. Below the range from which outgoing connections get theirs: a client that reconnects
 * while a server is down would otherwise take its port, or even connect to itself there.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = 10_000 + Math.floor(Math.random() * 22_000)
    if (handedOut.has(port)) continue
    handedOut.add(port)
    if (await isFree(port)) return port
  }
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
  })
}

export async function until(
  what: string,
  timeoutMs: number,
  check: () => Promise<boolean>,
): Promise<void> {
  const endAt = Date.now() + timeoutMs
  while (!(await check())) {
    if (Date.now() > endAt) throw new Error(`${what} did not happen within ${timeoutMs} ms`)
    await new Promise((resolve) => setTimeout(resolve, 25))
  }
}
