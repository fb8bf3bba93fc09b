import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { type App, createMillrace, defineQueue, silentLogger } from 'millrace'
import { sqliteInbox } from 'millrace/inbox'
import { kafka } from 'millrace/kafka'
import { memoryStore } from 'millrace/store'
import { z } from 'zod'
import { startKafka } from '../../scripts/rig/kafka-server.ts'
import { backendUrl } from '../backends.ts'
import { until } from '../transports/until.ts'
import { type SilenceProxy, silenceProxy } from './kafka-silence-proxy.ts'
import { stubbornProducer } from './stubborn-producer.ts'

const orders = defineQueue({
  name: 'silence',
  owner: 'team-a',
  payload: z.string(),
  retry: { attempts: 50, baseMs: 10, maxMs: 200 },
  capacity: 'unbounded',
  handlerTimeoutMs: 500,
})

/** By their numbers in the protocol: whatever a group, its positions and its messages need. */
const NEEDED = [
  '0 of sending',
  '1 of reading',
  '8 of asking',
  '9 of asking',
  '10 of asking',
  '11 of grouping',
  '12 of grouping',
  '14 of grouping',
]

const PATIENCE_MS = 60_000
const LIMIT_MS = 1_000
/** Some of its heartbeats. */
const SOON_MS = 1_000
/** A broker that has just started makes a topic more slowly than it answers later. */
const START_MS = 10_000

if (backendUrl('kafka') !== undefined) {
  test('kafka: whichever request the network swallows, with its connection, work goes on.', async (t) => {
    const proxy = await brokerBehind(t)
    const effects = effectsOf(t)
    let app = await worker(t, proxy, effects.db, START_MS)
    const load = stubbornProducer((id) => app.send(orders, id, { id }), { againMs: 20 })
    t.after(load.stop)
    /** Everything is asked anew, by another app that is alone, so that nobody takes over from it. */
    const stir = async (): Promise<void> => {
      await app.close({ timeoutMs: 1_000 })
      const isStarted = async (): Promise<boolean> => {
        const next = await worker(t, proxy, effects.db).catch(() => undefined)
        app = next ?? app
        return next !== undefined
      }
      await until('another one starts', isStarted, PATIENCE_MS)
      const works = (): boolean => (app.counters()[orders.name]?.started ?? 0) > 0
      await until('it works', () => works() || proxy.isSilent(), PATIENCE_MS)
    }
    await until('some effects', () => effects.made().size > 20, 30_000)
    // Topics are made once, and by the first one only.
    proxy.asked()
    await stir()
    const kinds = new Set<string>()
    const isAllAsked = (): boolean => {
      for (const kind of proxy.asked()) kinds.add(kind)
      return NEEDED.every((kind) => kinds.has(kind))
    }
    await until('all is asked', isAllAsked)
    for (const kind of [...kinds].sort()) {
      proxy.silenceAt(kind)
      await until(
        `${kind} is swallowed`,
        async () => {
          await stir()
          return await isSoonSilent(proxy)
        },
        PATIENCE_MS,
      )
      const at = performance.now()
      const sent = new Set(load.confirmed)
      await until(`sends after ${kind}`, () => load.confirmed.size > sent.size + 20, PATIENCE_MS)
      const areMade = (): boolean => {
        const made = effects.made()
        return [...load.confirmed].slice(0, sent.size + 20).every((payload) => made.has(payload))
      }
      await until(`effects after ${kind}`, areMade, PATIENCE_MS)
      t.diagnostic(`${kind}: ${Math.round(performance.now() - at)} ms`)
    }
    await load.stop()
    const all = (): boolean => {
      const made = effects.made()
      return [...load.confirmed].every((payload) => made.has(payload))
    }
    await until('all effects', all, PATIENCE_MS)
  })
}

/**
 * What is asked from time to time (a heartbeat, a commit) may not have been asked yet when an app has begun to work, and a quick one
 * would be closed before it, each time.
 */
async function isSoonSilent(proxy: SilenceProxy): Promise<boolean> {
  const endAt = Date.now() + SOON_MS
  while (!proxy.isSilent() && Date.now() < endAt) await sleep(10)
  return proxy.isSilent()
}

async function brokerBehind(t: TestContext): Promise<SilenceProxy> {
  const proxies: SilenceProxy[] = []
  const server = await startKafka({
    config: async ({ port }) => {
      const proxy = await silenceProxy(port)
      proxies.push(proxy)
      return [`advertised.listeners=PLAINTEXT://127.0.0.1:${proxy.port}`]
    },
  })
  t.after(() => server.stop())
  const [proxy] = proxies
  assert.ok(proxy)
  t.after(() => proxy.close())
  return proxy
}

function effectsOf(t: TestContext) {
  const db = new DatabaseSync(':memory:')
  t.after(() => db.close())
  db.exec('CREATE TABLE effect (payload TEXT PRIMARY KEY)')
  const made = (): ReadonlySet<string> =>
    new Set(
      db
        .prepare('SELECT payload FROM effect')
        .all()
        .map(({ payload }) => String(payload)),
    )
  return { db, made }
}

async function worker(
  t: TestContext,
  { port }: SilenceProxy,
  db: DatabaseSync,
  timeoutMs: number = LIMIT_MS,
): Promise<App> {
  const app = await createMillrace({
    transport: kafka({
      ...{ brokers: `127.0.0.1:${port}`, retry: 'park', partitions: 3, timeoutMs },
      ...{ sessionTimeoutMs: 3_000, heartbeatMs: 200, revokeDrainMs: 500 },
    }),
    store: memoryStore(),
    inbox: sqliteInbox({ db }),
    queues: [orders],
    logger: silentLogger,
  })
  t.after(() => app.close({ timeoutMs: 1_000 }))
  app.work(orders, async (message, ctx) => {
    await ctx.tx((tx) => {
      tx.prepare('INSERT INTO effect VALUES (?)').run(message.payload)
    })
  })
  await app.start()
  return app
}
