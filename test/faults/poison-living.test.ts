import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { createMillrace, defineQueue, silentLogger } from 'millrace'
import { sqliteStore } from 'millrace/store'
import { z } from 'zod'
import { startKafka } from '../../scripts/rig/kafka-server.ts'
import { startRabbitmq } from '../../scripts/rig/rabbitmq-server.ts'
import { backendUrl } from '../backends.ts'
import { until } from '../transports/until.ts'
import { connectorOf, type Place } from './poison-app.ts'
import { tcpProxy } from './tcp-proxy.ts'

/** Who lost its claim and lives is no crash, however often that happens during one run. */
interface Trouble {
  readonly url: string
  /**
   * Happens three times while a handler runs, and is over when it returns.
   *
   * @param givenUp until no handler runs any more
   */
  readonly happens: (givenUp: () => Promise<void>) => Promise<void>
  /** Whether the handler loses its message each time, and it is handed out again. */
  readonly losesClaims: boolean
}

for (const kind of ['quorum', 'classic', 'standard'] as const) {
  const url = backendUrl(kind === 'standard' ? 'sqs elasticmq' : 'rabbitmq')
  if (url === undefined) continue
  test(`${kind}: a connection that is cut three times during a long handler is no crash`, async (t) => {
    const target = new URL(url)
    const proxy = await tcpProxy(Number(target.port))
    t.after(() => proxy.close())
    target.port = String(proxy.port)
    target.hostname = '127.0.0.1'
    await survives(t, kind, {
      url: target.href,
      happens: async () => proxy.cut(),
      losesClaims: kind !== 'standard',
    })
  })
}

test('a RabbitMQ that is restarted three times during a long handler is no crash', async (t) => {
  if (backendUrl('rabbitmq') === undefined) return
  const server = await startRabbitmq()
  t.after(() => server.stop())
  const happens = async (): Promise<void> => {
    await server.halt('crash')
    await server.resume()
  }
  await survives(t, 'quorum', { url: server.url, happens, losesClaims: true })
})

for (const kind of ['hold', 'park'] as const) {
  test(`${kind}: a Kafka that is silent for longer than a session three times during a long handler is no crash`, async (t) => {
    if (backendUrl('kafka') === undefined) return
    const server = await startKafka()
    t.after(() => server.stop())
    const happens: Trouble['happens'] = async (givenUp) => {
      server.nodes[0]?.freeze()
      // In a rebalance both sides are more patient, and a group that answers in time has taken nothing away.
      await Promise.all([givenUp(), sleep(2_500)])
      server.nodes[0]?.thaw()
    }
    await survives(t, kind, { url: server.brokers.join(','), happens, losesClaims: true })
  })
}

/** Two workers, so that the message can go to the other one. */
async function survives(t: TestContext, kind: Place['kind'], trouble: Trouble): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-living-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  const queue = defineQueue({
    ...{ name: `living-${kind}-${process.pid}`, owner: 'team-chaos' },
    payload: z.object({ n: z.number() }),
    handlerTimeoutMs: 120_000,
  })
  const attempts: number[] = []
  let running = 0
  let isOver = false
  const apps = [0, 1].map(async () => {
    const app = await createMillrace({
      transport: connectorOf({ kind, url: trouble.url, run: '', storeFile: '', recordFile: '' }),
      store: sqliteStore({ file: join(folder, 'store.db') }),
      queues: [queue],
      logger: silentLogger,
    })
    t.after(() => app.close({ timeoutMs: 0 }))
    app.work(queue, async ({ attempt }, { signal }) => {
      attempts.push(attempt)
      running += 1
      try {
        while (!isOver && !signal.aborted) await sleep(10)
      } finally {
        running -= 1
      }
    })
    return app
  })
  const [app] = await Promise.all(apps)
  assert.ok(app)
  await app.send(queue, { n: 1 })
  for (const one of await Promise.all(apps)) await one.start()
  await until('the handler to run', () => running === 1, 60_000)
  for (let times = 1; times <= 3; times++) {
    const before = attempts.length
    await trouble.happens(() => until('the claim to be given up', () => running === 0, 30_000))
    if (trouble.losesClaims) {
      await until('another run', () => attempts.length > before && running === 1, 60_000)
    } else await sleep(1_000)
  }
  isOver = true
  await until(
    'the message to be done',
    async () => {
      const { depth, dead, inFlight = 0 } = await app.admin.stats(queue).catch(() => empty)
      return running === 0 && (depth ?? 0) + (dead ?? 0) + inFlight === 0
    },
    60_000,
  )
  assert.deepEqual((await app.admin.deadLetters.list(queue)).items, [])
  assert.deepEqual([...new Set(attempts)], [1], `attempts were ${attempts}`)
  t.diagnostic(`${attempts.length} runs`)
}

/** Not empty: nobody knows while the broker does not answer. */
const empty = { depth: 1, dead: 0, inFlight: 0 }
