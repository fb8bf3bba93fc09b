import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, existsSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { ROOT } from '../source-files.ts'
import { until } from '../transports/until.ts'
import { project } from './cli-project.ts'

/** Refuses each byte, as a full disk does. */
const FULL = '/dev/full'
const skip = existsSync(FULL) ? false : `this machine has no ${FULL}`

async function help(t: TestContext, full: 'stdout' | 'both'): Promise<readonly unknown[]> {
  const disk = openSync(FULL, 'w')
  t.after(() => closeSync(disk))
  const args = ['--conditions=millrace-source', join(ROOT, 'bin/millrace.js'), 'help']
  const stdio = ['ignore', disk, full === 'both' ? disk : 'pipe'] as const
  const child = spawn(process.execPath, args, { stdio: [...stdio] })
  let said = ''
  child.stderr?.on('data', (chunk: Buffer) => {
    said += String(chunk)
  })
  const [code] = await once(child, 'close')
  return [code, said]
}

test('output that cannot be written is one line and exit code 1, not a stack of Node', {
  skip,
}, async (t) => {
  const [code, said] = await help(t, 'stdout')
  assert.equal(code, 1)
  assert.match(String(said), /^millrace: standard output cannot be written: ENOSPC[^\n]*\n$/)
  assert.deepEqual(await help(t, 'both'), [1, ''])
})

const SHOP = `
import { setTimeout as wait } from 'node:timers/promises'
import { defineConfig, defineQueue, defineWorker } from 'millrace'
import { memory } from 'millrace/memory'
import { z } from 'zod'

const orders = defineQueue({ name: 'orders', owner: 'shop', payload: z.object({ id: z.string() }) })

export default defineConfig({
  transport: memory(),
  queues: [orders],
  intake: { port: 0 },
  workers: [
    defineWorker(orders, async () => {
      for (let n = 0; n < 40; n++) console.log('more than the log can take, in pieces that are refused as a whole')
      await wait(500)
      console.error('done')
    }),
  ],
})
`

test('millrace start whose log cannot be written any more finishes what it has in hand, says why, and ends with 1.', async (t) => {
  const { folder, write } = await project(t)
  await write('millrace.config.ts', SHOP)
  const log = join(folder, 'log')
  const node = [process.execPath, '--conditions=millrace-source', join(ROOT, 'bin/millrace.js')]
  // In blocks of 512 or 1,024 bytes. A process that goes beyond is told EFBIG, as Node ignores the signal.
  const script = `ulimit -f 2; exec ${node.join(' ')} start > log`
  const env = { ...process.env, NODE_DISABLE_COMPILE_CACHE: '1' }
  const child = spawn('/bin/sh', ['-c', script], { cwd: folder, env })
  t.after(() => child.kill('SIGKILL'))
  let said = ''
  child.stderr.on('data', (chunk: Buffer) => {
    said += String(chunk)
  })
  const url = (): string | undefined => /http:\S+/.exec(readFileSync(log, 'utf8'))?.[0]
  await until('the intake', () => existsSync(log) && url() !== undefined)
  const ended = once(child, 'close')
  const answer = await fetch(`${url()}/queues/orders/messages`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{"id":"1"}',
  })
  assert.ok(answer.ok, await answer.text())
  const [code] = await ended
  assert.match(said, /^millrace: standard output cannot be written: EFBIG[^\n]*\ndone\n$/)
  assert.equal(code, 1)
})
