import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import {
  type App,
  createMillrace,
  defineQueue,
  QueueFullError,
  type QueueOptions,
  silentLogger,
} from 'millrace'
import { postgres } from 'millrace/postgres'
import { sqs } from 'millrace/sqs'
import { memoryStore } from 'millrace/store'
import { z } from 'zod'
import { backendUrl } from '../backends.ts'
import { sideBySide } from '../side-by-side.ts'
import { brokerConnectors, type Connector, SQS_ACCOUNT, type Subject } from './broker-connectors.ts'
import { until } from './until.ts'

const subjects: readonly Subject[] = [
  ['postgres', 'postgres 18', (url) => postgres({ url })],
  ...brokerConnectors,
  ['sqs fifo', 'sqs elasticmq', (endpoint) => sqs({ ...SQS_ACCOUNT, endpoint, kind: 'fifo' })],
]

const MAX_DEPTH = 10
const MESSAGES = 30
const DEADLINE_MS = 60_000

const payload = z.object({ n: z.number() })

let made = 0

/** A queue with a sender; the worker is another app. */
async function appsOn(
  t: TestContext,
  connector: () => Connector,
  capacity: QueueOptions<typeof payload>['capacity'] & object,
) {
  const queue = defineQueue({
    name: `full-${process.pid}-${Date.now().toString(36)}-${++made}`,
    owner: 'team-a',
    payload,
    capacity,
  })
  const store = memoryStore()
  const open = async (): Promise<App> => {
    const parts = { transport: connector(), store, queues: [queue], logger: silentLogger }
    const app = await createMillrace(parts)
    t.after(() => app.close({ timeoutMs: 5_000 }))
    return app
  }
  const handled = new Set<number>()
  const sender = await open()
  return {
    sender,
    queue,
    handled,
    send: (n: number) => sender.send(queue, { n }),
    work: async (): Promise<void> => {
      const worker = await open()
      worker.work(queue, ({ payload: { n } }) => void handled.add(n), { concurrency: 4 })
      await worker.start()
    },
    isEmpty: async (): Promise<boolean> => {
      const { depth = 0, inFlight = 0, scheduled = 0 } = await sender.admin.stats(queue)
      return depth + inFlight + scheduled === 0
    },
  }
}

function assertFull(error: unknown): void {
  assert.ok(error instanceof QueueFullError, String(error))
  assert.ok(error.retryAfterMs > 0 && error.retryAfterMs <= 60_000, String(error.retryAfterMs))
}

const { test, run } = sideBySide('a full queue')

for (const [name, backend, connector] of subjects) {
  const url = backendUrl(backend)
  if (url === undefined) continue

  test(`${name}: a send to a full queue is refused with when to come back, and what was accepted is handled, and nothing else`, async (t) => {
    const on = await appsOn(t, () => connector(url), { maxDepth: MAX_DEPTH })
    const accepted = new Set<number>()
    const refused = new Set<number>()
    const offer = async (n: number): Promise<void> => {
      try {
        await on.send(n)
        accepted.add(n)
      } catch (error) {
        assertFull(error)
        refused.add(n)
      }
    }
    for (let n = 0; n < MESSAGES; n++) await offer(n)
    assert.deepEqual([accepted.size, refused.size], [MAX_DEPTH, MESSAGES - MAX_DEPTH])
    await on.work()
    await until('all of them are handled', () => on.handled.size >= MAX_DEPTH, DEADLINE_MS)
    let next = MESSAGES
    await until(
      'there is room again',
      async () => {
        await offer(next++)
        return accepted.size >= 2 * MAX_DEPTH
      },
      DEADLINE_MS,
    )
    await until('all are handled', () => on.handled.size >= accepted.size, DEADLINE_MS)
    await until('nothing is left', on.isEmpty)
    assert.deepEqual([...on.handled].toSorted(byNumber), [...accepted].toSorted(byNumber))
  })

  test(`${name}: a send that waits goes on when there is room, else it is refused in time, and nothing accepted is lost`, async (t) => {
    const waiting = { maxDepth: MAX_DEPTH, whenFull: 'wait' } as const
    const on = await appsOn(t, () => connector(url), { ...waiting, waitMs: DEADLINE_MS })
    let stored = 0
    const sends = Array.from({ length: MESSAGES }, (_, n) => on.send(n).then(() => stored++))
    await until('it is full', () => stored >= MAX_DEPTH, DEADLINE_MS)
    const impatient = await appsOn(t, () => connector(url), { ...waiting, waitMs: 300 })
    for (let n = 0; n < MAX_DEPTH; n++) await impatient.send(n)
    await assert.rejects(impatient.send(MAX_DEPTH), (error) => {
      assertFull(error)
      return true
    })
    assert.equal(stored, MAX_DEPTH, 'a send did not wait')
    await on.work()
    await Promise.all(sends)
    await impatient.work()
    await until('all are handled', () => on.handled.size >= MESSAGES, DEADLINE_MS)
    const rest = () => impatient.handled.size >= MAX_DEPTH
    await until('so are those of the impatient one', rest, DEADLINE_MS)
    await until('nothing is left', async () => (await on.isEmpty()) && (await impatient.isEmpty()))
    assert.ok(!impatient.handled.has(MAX_DEPTH), 'what was refused was stored')
  })
}

run(4)

function byNumber(a: number, b: number): number {
  return a - b
}
