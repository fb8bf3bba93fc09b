import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { type Child, child, root } from '../examples/child.ts'

export interface CliFolderOptions {
  readonly brokers: string
  readonly prefix?: string
}

/** A project whose packers have no piano in stock, until there is a file of that name. */
export async function cliFolder(t: TestContext, options: CliFolderOptions): Promise<string> {
  const cwd = await mkdtemp(join(tmpdir(), 'millrace-kafka-cli-'))
  t.after(() => rm(cwd, { recursive: true, force: true }))
  await mkdir(join(cwd, 'node_modules'))
  for (const [name, path] of [
    ['millrace', root],
    ['zod', join(root, 'node_modules', 'zod')],
  ] as const) {
    await symlink(path, join(cwd, 'node_modules', name))
  }
  await writeFile(join(cwd, 'millrace.config.ts'), config(options))
  return cwd
}

export function cli(t: TestContext, cwd: string, args: readonly string[]): Child {
  return child(t, process.execPath, [join(root, 'bin', 'millrace.js'), ...args], { cwd })
}

const config = ({ brokers, prefix = '' }: CliFolderOptions): string => `
import { existsSync } from 'node:fs'
import { defineConfig, defineQueue, defineWorker, PermanentError } from 'millrace'
import { kafka } from 'millrace/kafka'
import { sqliteStore } from 'millrace/store'
import { z } from 'zod'

const orders = defineQueue({ name: 'orders', owner: 'team-x', payload: z.object({ item: z.string() }) })
const work = defineWorker(orders, async ({ payload: { item } }) => {
  if (item === 'piano' && !existsSync('piano')) throw new PermanentError('no piano in stock')
  console.log('packed ' + item)
})
export default defineConfig({
  transport: kafka({ brokers: '${brokers}', prefix: '${prefix}', retry: 'park', partitions: 2 }),
  store: sqliteStore({ file: 'store.db' }),
  queues: [orders],
  workers: [work],
})
`
