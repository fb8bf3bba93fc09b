import { spawn } from 'node:child_process'
import type { TestContext } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

export const root: string = fileURLToPath(new URL('../..', import.meta.url))

/** A process of the test, with all that it said so far. */
export interface Child {
  readonly pid: number
  /** stdout and stderr together. */
  output(): string
  /** Resolves with the first match in the output, rejects with the output when it does not come in time. */
  says(pattern: RegExp, withinMs?: number): Promise<RegExpExecArray>
  kill(signal: NodeJS.Signals): void
  /** Exit code, or the name of the signal that killed it. */
  readonly ended: Promise<number | string>
}

export interface ChildOptions {
  readonly cwd?: string
  readonly env?: Readonly<Record<string, string | undefined>>
}

/** Everything runs on the sources, so that no test depends on an older build. */
const SOURCE = { NODE_OPTIONS: '--conditions=millrace-source' }
const DEADLINE_MS = 60_000

export function child(
  t: TestContext,
  command: string,
  args: readonly string[],
  options: ChildOptions = {},
): Child {
  const process_ = spawn(command, args, {
    cwd: options.cwd ?? root,
    env: { ...process.env, ...SOURCE, ...options.env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let text = ''
  const listeners = new Set<() => void>()
  for (const stream of [process_.stdout, process_.stderr]) {
    stream.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk
      for (const listener of listeners) listener()
    })
  }
  const ended = new Promise<number | string>((resolve, reject) => {
    process_.once('error', reject)
    process_.once('close', (code, signal) => resolve(code ?? signal ?? 'unknown'))
  })
  t.after(() => process_.kill('SIGKILL'))
  return {
    pid: process_.pid ?? 0,
    output: () => text,
    says: (pattern, withinMs = DEADLINE_MS) =>
      new Promise((resolve, reject) => {
        const look = (): void => {
          const found = pattern.exec(text)
          if (found === null) return
          done()
          resolve(found)
        }
        const late = setTimeout(() => {
          done()
          reject(new Error(`no ${pattern} within ${withinMs} ms in:\n${text}`))
        }, withinMs)
        const done = (): void => {
          clearTimeout(late)
          listeners.delete(look)
        }
        listeners.add(look)
        look()
      }),
    kill: (signal) => void process_.kill(signal),
    ended,
  }
}

/** Lets the time pass in which the same signal again would be npm's echo of the first one. */
export function pastEcho(): Promise<void> {
  return pause(50)
}

/** Runs a line as a person would paste it into a shell. */
export async function paste(t: TestContext, line: string): Promise<string> {
  const shell = child(t, 'sh', ['-c', line])
  const code = await shell.ended
  if (code !== 0) throw new Error(`exit code ${code} of: ${line}\n${shell.output()}`)
  return shell.output()
}

/** Asks again until the answer is right or the time is over. */
export async function eventually<T>(
  ask: () => Promise<T>,
  isRight: (answer: T) => boolean,
  withinMs = DEADLINE_MS,
): Promise<T> {
  const deadline = Date.now() + withinMs
  for (;;) {
    const answer = await ask()
    if (isRight(answer)) return answer
    if (Date.now() > deadline)
      throw new Error(`not within ${withinMs} ms; last: ${JSON.stringify(answer)}`)
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}
