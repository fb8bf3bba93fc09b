import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { main } from '../../src/cli/main.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))

export interface Ran {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

/** A user's project in a folder of its own, with millrace and zod installed. */
export interface Project {
  readonly folder: string
  write(name: string, text: string): Promise<void>
  /** Runs a command line in this process. */
  run(...args: readonly string[]): Promise<Ran>
  runWithInput(input: string | Uint8Array, ...args: readonly string[]): Promise<Ran>
  /** As one that is told to stop as soon as it has begun. */
  runStopped(...args: readonly string[]): Promise<Ran>
}

export async function project(t: TestContext): Promise<Project> {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-cli-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  await mkdir(join(folder, 'node_modules'))
  await symlink(root, join(folder, 'node_modules', 'millrace'))
  await symlink(join(root, 'node_modules', 'zod'), join(folder, 'node_modules', 'zod'))
  const runUntil = async (
    signal: AbortSignal,
    input: string | Uint8Array,
    args: readonly string[],
  ): Promise<Ran> => {
    let stdout = ''
    let stderr = ''
    const code = await main(args, {
      stdout: { write: (text) => (stdout += text) },
      stderr: { write: (text) => (stderr += text) },
      stdin: oneChunk(input),
      env: { USER: 'ada' },
      cwd: folder,
      signal,
    })
    return { code, stdout, stderr }
  }
  const runWithInput: Project['runWithInput'] = (input, ...args) =>
    runUntil(new AbortController().signal, input, args)
  return {
    folder,
    write: (name, text) => writeFile(join(folder, name), text),
    run: (...args) => runWithInput('', ...args),
    runWithInput,
    runStopped: (...args) => runUntil(AbortSignal.abort(), '', args),
  }
}

async function* oneChunk(input: string | Uint8Array): AsyncGenerator<Uint8Array> {
  yield Buffer.from(input)
}

/** A config over SQLite with one queue; `handler` is TypeScript. */
export function ordersConfig(folder: string, handler = '() => undefined'): string {
  return `
import { defineConfig, defineQueue, defineWorker, PermanentError, TransientError } from 'millrace'
import { sqlite } from 'millrace/sqlite'
import { z } from 'zod'

const orders = defineQueue({
  name: 'orders',
  owner: 'team-shop',
  payload: z.object({ orderId: z.string() }),
  retry: { attempts: 2, baseMs: 1, maxMs: 1 },
})
const errors: Record<string, unknown> = { PermanentError, TransientError }
void errors

export default defineConfig({
  transport: sqlite({ file: ${JSON.stringify(join(folder, 'orders.db'))} }),
  queues: [orders],
  workers: [defineWorker(orders, ${handler})],
})
`
}
