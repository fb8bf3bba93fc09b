import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { type Child, child, root } from '../examples/child.ts'

export interface CliFolderOptions {
  /** Where it comes from, and what it is called there: `kafka`. */
  readonly transport: string
  /** Of the transport, without what may not be written as JSON. */
  readonly options: Readonly<Record<string, unknown>>
  readonly queue?: string
  /** With a file of its own for what the transport does not keep. */
  readonly withStore?: boolean
}

/** A project whose packers have no piano in stock, until there is a file of that name. */
export async function cliFolder(t: TestContext, options: CliFolderOptions): Promise<string> {
  const cwd = await mkdtemp(join(tmpdir(), `millrace-${options.transport}-cli-`))
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

const config = ({
  transport,
  options,
  queue = 'orders',
  withStore = false,
}: CliFolderOptions): string => `
import { existsSync } from 'node:fs'
import { defineConfig, defineQueue, defineWorker, PermanentError } from 'millrace'
import { ${transport} } from 'millrace/${transport}'
import { sqliteStore } from 'millrace/store'
import { z } from 'zod'

const orders = defineQueue({ name: '${queue}', owner: 'team-x', payload: z.object({ item: z.string() }) })
const work = defineWorker(orders, async ({ payload: { item } }) => {
  if (item === 'piano' && !existsSync('piano')) throw new PermanentError('no piano in stock')
  console.log('packed ' + item)
})
export default defineConfig({
  transport: ${transport}(${JSON.stringify(options)}),
  ${withStore ? "store: sqliteStore({ file: 'store.db' })," : ''}
  queues: [orders],
  workers: [work],
})
`
