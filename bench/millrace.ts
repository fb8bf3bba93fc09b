import { type App, createMillrace, defineQueue } from 'millrace'
import { z } from 'zod'
import type { Opened, Parcel, Place } from './contender.ts'
import type { Store } from './store.ts'

const queue = defineQueue({
  name: 'parcels',
  owner: 'bench',
  payload: z.object({ n: z.number(), at: z.number(), note: z.string() }),
  capacity: 'unbounded',
})

/** `variant`: backend, concurrency, and `full` or `normal` for SQLite. */
export async function open(place: Place, variant: string): Promise<Opened> {
  const [backend, concurrency = '', synchronous] = variant.split(' ')
  switch (backend) {
    case 'memory': {
      const { memoryStore } = await import('./millrace-memory.ts')
      return await openOn(memoryStore(), Number(concurrency))
    }
    case 'sqlite': {
      const { sqliteStore } = await import('./millrace-sqlite.ts')
      const store = sqliteStore(place.file, synchronous === 'normal' ? 'normal' : 'full')
      return await openOn(store, Number(concurrency))
    }
    case 'postgres': {
      const { postgresStore } = await import('./millrace-postgres.ts')
      return await openOn(postgresStore(place.url), Number(concurrency))
    }
    case 'redis': {
      const { redisStore } = await import('./millrace-redis.ts')
      return await openOn(redisStore(place.url), Number(concurrency))
    }
    case 'nats': {
      const { natsStore } = await import('./millrace-nats.ts')
      return await openOn(natsStore(place.url), Number(concurrency))
    }
    default:
      throw new Error(`expected memory, sqlite, postgres, redis or nats, got "${variant}"`)
  }
}

async function openOn<Tx>(store: Store<Tx>, concurrency: number): Promise<Opened> {
  const app = await createMillrace({ transport: store.transport, queues: [queue] })
  const apps: App<Tx>[] = []
  return {
    async send(parcel) {
      await app.send(queue, parcel)
    },
    async sendMany(parcels) {
      await app.sendBatch(queue, parcels)
    },
    async work(run) {
      app.work(queue, ({ payload }) => run(payload), { concurrency })
      await app.start()
    },
    async workWithEffect(run: (parcel: Parcel) => void) {
      await store.prepare()
      const { transport, inbox } = store
      const withInbox = await createMillrace<Tx>({ transport, queues: [queue], inbox })
      apps.push(withInbox)
      withInbox.work(
        queue,
        async ({ id, payload }, ctx) => {
          await ctx.tx((tx) => store.effect(tx, id, payload.note))
          run(payload)
        },
        { concurrency },
      )
      await withInbox.start()
    },
    async remaining() {
      const { depth, inFlight, scheduled } = await app.admin.stats(queue)
      return (depth ?? 0) + (inFlight ?? 0) + (scheduled ?? 0)
    },
    effects: () => store.effects(),
    async close() {
      for (const one of [...apps, app]) await one.close()
      await store.close()
    },
  }
}
