import assert from 'node:assert/strict'
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { z } from 'zod'
import { child, eventually, root } from '../examples/child.ts'
import { account, freshName } from './sqs-harness.ts'
import { type SqsServer, sqsServers } from './sqs-servers.ts'

const statsOf = z.object({
  ...{ queue: z.string(), depth: z.number(), inFlight: z.number(), dead: z.number() },
})
const letterOf = z.object({ id: z.string(), errorClass: z.string(), owner: z.string() })
const pageOf = z.object({ items: z.array(letterOf) })
const BIN = join(root, 'bin', 'millrace.js')

/** Its dead letters are in a store that all processes of the project share. */
function config({ url }: SqsServer, queue: string): string {
  return `
import { defineConfig, defineQueue, defineWorker, PermanentError } from 'millrace'
import { sqs } from 'millrace/sqs'
import { sqliteStore } from 'millrace/store'
import { existsSync } from 'node:fs'
import { z } from 'zod'

const orders = defineQueue({ name: '${queue}', owner: 'team-shop', payload: z.object({ n: z.number() }) })
const bill = defineWorker(orders, ({ payload, attempt }) => {
  if (payload.n === 2 && !existsSync('mended')) throw new PermanentError('no customer')
  console.log('billed ' + payload.n + ' at attempt ' + attempt)
})
export default defineConfig({
  transport: sqs({ ...${JSON.stringify(account)}, endpoint: '${url}' }),
  store: sqliteStore({ file: 'store.db' }),
  queues: [orders],
  workers: [bill],
})
`
}

interface Shop {
  readonly folder: string
  readonly queue: string
  /** Runs a command to its end. */
  run(
    ...args: readonly string[]
  ): Promise<{ readonly code: number | string; readonly said: string }>
  json(...args: readonly string[]): Promise<unknown>
}

async function shopOn(t: TestContext, server: SqsServer): Promise<Shop> {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-sqs-cli-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  await mkdir(join(folder, 'node_modules'))
  for (const [name, path] of [
    ['millrace', root],
    ['zod', join(root, 'node_modules', 'zod')],
  ] as const) {
    await symlink(path, join(folder, 'node_modules', name))
  }
  const queue = freshName()
  await writeFile(join(folder, 'millrace.config.ts'), config(server, queue))
  const run: Shop['run'] = async (...args) => {
    const process_ = child(t, process.execPath, [BIN, ...args], { cwd: folder })
    return { code: await process_.ended, said: process_.output() }
  }
  return {
    ...{ folder, queue, run },
    json: async (...args) => JSON.parse((await run(...args, '--json')).said),
  }
}

// One of the stand-ins: what differs between them is the transport's business, and each command starts a process.
for (const server of sqsServers().slice(0, 1)) {
  test(`${server.name}: send, start, stats and the dead letters from a shell, each in a process of its own.`, async (t) => {
    const shop = await shopOn(t, server)
    const { folder, queue, run, json } = shop
    for (const n of [1, 2]) {
      const { code, said } = await run('send', queue, `{"n":${n}}`)
      assert.equal(code, 0, said)
    }
    const sent = statsOf.parse(await json('stats', queue))
    assert.deepEqual([sent.depth, sent.dead], [2, 0])

    const worker = child(t, process.execPath, [BIN, 'start'], { cwd: folder })
    await worker.says(/^billed 1 at attempt 1$/m)
    await worker.says(/is dead \(permanent\): no customer/)
    const listed = await eventually(
      async () => pageOf.parse(await json('dlq', 'ls', queue)),
      ({ items }) => items.length === 1,
    )
    const { id, errorClass, owner } = letterOf.parse(listed.items[0])
    assert.deepEqual([errorClass, owner], ['permanent', 'team-shop'])
    const shown = z.object({ payload: z.unknown() }).parse(await json('dlq', 'show', queue, id))
    assert.deepEqual(shown.payload, { n: 2 })

    await writeFile(join(folder, 'mended'), '')
    const redriven = await run('dlq', 'redrive', queue, id)
    assert.equal(redriven.code, 0, redriven.said)
    await worker.says(/^billed 2 at attempt 1$/m)
    const audit = await run('dlq', 'audit', queue)
    assert.match(audit.said, new RegExp(`redrive.*${id}`))
    const end = await eventually(
      async () => statsOf.parse(await json('stats', queue)),
      ({ depth, inFlight, dead }) => depth + inFlight + dead === 0,
    )
    assert.equal(end.queue, queue)
    const halted = await run('keys', 'ls', queue)
    assert.equal(halted.code, 2)
    assert.match(
      halted.said,
      /^millrace: halted keys: sqs keeps no ordering keys .*\[MILLRACE_INVALID_OPTIONS\]$/m,
    )
    worker.kill('SIGTERM')
    assert.equal(await worker.ended, 0)
  })
}
