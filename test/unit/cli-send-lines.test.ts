import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { defineQueue, MillraceError } from 'millrace'
import { testApp } from 'millrace/testing'
import { z } from 'zod'
import { send } from '../../src/cli/commands/send.ts'
import { parseCall } from '../../src/cli/parse-call.ts'
import { sendLines } from '../../src/cli/send-lines.ts'

const queue = defineQueue({ name: 'orders', owner: 'team', payload: z.object({ n: z.number() }) })

/** Sends the lines with an app whose batches may fail or be stopped; answers what was said. */
async function sent(
  t: TestContext,
  lines: readonly string[],
  more: { readonly failAt?: number; readonly stopAt?: number; readonly dedupe?: boolean } = {},
) {
  const app = await testApp({ queues: [queue] })
  t.after(() => app.close({ timeoutMs: 0 }))
  const said = { out: '', err: '' }
  const stop = new AbortController()
  let batches = 0
  const failing: typeof app = {
    ...app,
    sendBatch: async (...given) => {
      batches += 1
      if (batches === more.stopAt) stop.abort()
      if (batches === more.failAt) {
        throw new MillraceError('MILLRACE_OUTCOME_UNKNOWN', 'the connection was lost')
      }
      return await app.sendBatch(...given)
    },
  }
  async function* input(): AsyncGenerator<string> {
    yield lines.join('\n')
  }
  const call = parseCall(send, ['orders', '--batch'], {
    stdout: { write: (text) => (said.out += text) },
    stderr: { write: (text) => (said.err += text) },
    env: {},
    cwd: '.',
    signal: stop.signal,
    stdin: input(),
  })
  const dedupeKey = (_payload: unknown, index: number): string => `${index % 2}`
  const code = await sendLines(call, failing, queue, more.dedupe === true ? { dedupeKey } : {})
  return { code, ...said, depth: (await app.admin.stats(queue)).depth }
}

const numbers = (count: number): readonly string[] =>
  Array.from({ length: count }, (_, n) => `{"n":${n}}`)

test('send --batch: a step whose answer was lost is not said to be stored, nor to be not', async (t) => {
  const { code, err, depth } = await sent(t, numbers(1_200), { failAt: 2 })
  assert.match(err, /^millrace: lines 1 to 500 are stored for sure; of the next 500 nobody knows$/m)
  assert.deepEqual([code, depth], [1, 500])
  const first = await sent(t, numbers(3), { failAt: 1 })
  assert.match(first.err, /^millrace: nothing was stored for sure; of the next 3 nobody knows$/m)
})

test('send --batch: a signal ends it between two lines, with what was stored', async (t) => {
  const { code, err, depth } = await sent(t, numbers(1_200), { stopAt: 1 })
  assert.equal(err, 'millrace: stopped; lines 1 to 500 are stored, those after are not\n')
  assert.deepEqual([code, depth], [1, 500])
})

test('send --batch: lines are counted as an editor counts them, blank ones too', async (t) => {
  const lines = numbers(1_200).toSpliced(10, 0, '', '  ', '')
  const { err, depth } = await sent(t, lines, { failAt: 2 })
  assert.match(err, /lines 1 to 503 are stored for sure; of the next 500 nobody knows/)
  assert.equal(depth, 500)
})

test('send --batch: what was known already is counted apart', async (t) => {
  const { code, out, depth } = await sent(t, numbers(5), { dedupe: true })
  assert.deepEqual([code, out, depth], [0, 'stored 2, 3 were known already\n', 2])
})

test('send --batch: long lines go in smaller steps', async (t) => {
  const long = `{"n":1,"more":"${'x'.repeat(1_000_000)}"}`
  const { err, depth } = await sent(t, Array<string>(20).fill(long), { failAt: 3 })
  assert.match(err, /lines 1 to 16 are stored for sure; of the next 4 nobody knows/)
  assert.equal(depth, 16)
})
