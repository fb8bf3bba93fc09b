import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { type App, createMillrace, defineQueue } from 'millrace'
import { sqliteInbox } from 'millrace/inbox'
import { kafka } from 'millrace/kafka'
import { memoryStore } from 'millrace/store'
import { z } from 'zod'
import { silentLogger } from '../../src/model/logger.ts'

/** An app that sells on Kafka, two workers of it, and books of its own about what was confirmed and what was done. */
export interface Shop {
  /** What a send was confirmed of. */
  readonly confirmed: ReadonlySet<number>
  /** Rows that the handlers wrote, read from their database, not from the library. */
  sold(): ReadonlyMap<number, number>
  /** Ends the senders. */
  endSending(): Promise<void>
}

export const KEYS = 12

const orders = defineQueue({
  name: 'orders',
  owner: 'team-shop',
  payload: z.object({ n: z.number() }),
  idempotencyKey: ({ n }) => `order-${n}`,
  retry: { attempts: 20, baseMs: 100 },
})

export async function openShop(t: TestContext, brokers: readonly string[]): Promise<Shop> {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-shop-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const file = join(folder, 'shop.db')
  const books = new DatabaseSync(file)
  t.after(() => books.close())
  books.exec('PRAGMA journal_mode = WAL; CREATE TABLE sale (n INTEGER)')
  const open = async (): Promise<App> => {
    const db = new DatabaseSync(file, { timeout: 5_000 })
    const app = await createMillrace({
      transport: kafka({
        ...{ brokers, retry: 'hold', partitions: 6, replicas: 3, minInsyncReplicas: 2 },
        ...{ sessionTimeoutMs: 3_000, heartbeatMs: 300, timeoutMs: 5_000, revokeDrainMs: 1_000 },
      }),
      queues: [orders],
      store: memoryStore(),
      inbox: sqliteInbox({ db }),
      logger: silentLogger,
    })
    t.after(async () => {
      await app.close({ timeoutMs: 2_000 }).catch(() => {})
      db.close()
    })
    app.work(
      orders,
      async ({ payload: { n } }, ctx) => {
        await ctx.tx((tx) => {
          tx.prepare('INSERT INTO sale VALUES (?)').run(n)
        })
      },
      { concurrency: 20 },
    )
    await app.start()
    return app
  }
  const [shop] = await Promise.all([open(), open()])
  const stop = new AbortController()
  const confirmed = new Set<number>()
  const senders = Array.from({ length: KEYS }, (_, key) => sell(shop, key, confirmed, stop.signal))
  // A test that fails half way does not go on to send.
  t.after(() => stop.abort())
  return {
    confirmed,
    sold: () => {
      const rows = books.prepare('SELECT n, count(*) AS times FROM sale GROUP BY n').all()
      return new Map(rows.map(({ n, times }) => [Number(n), Number(times)]))
    },
    endSending: async () => {
      stop.abort()
      await Promise.all(senders)
    },
  }
}

/** One order after the other under one key, each sent again until it is confirmed. */
async function sell(
  shop: App,
  key: number,
  confirmed: Set<number>,
  stop: AbortSignal,
): Promise<void> {
  for (let n = key; !stop.aborted; n += KEYS) {
    const options = { id: `order-${n}`, orderingKey: `customer-${key}` }
    while (!confirmed.has(n)) {
      const isSent = await shop.send(orders, { n }, options).then(
        () => true,
        () => false,
      )
      if (isSent) confirmed.add(n)
      else if (stop.aborted) return
      await sleep(isSent ? 20 : 100)
    }
  }
}
