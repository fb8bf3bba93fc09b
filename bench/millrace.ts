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
  const on = <Tx>(store: Store<Tx>): Promise<Opened> => openOn(store, Number(concurrency))
  const { file, url } = place
  switch (backend) {
    case 'memory':
      return await on((await import('./millrace-memory.ts')).memoryStore())
    case 'sqlite': {
      const mode = synchronous === 'normal' ? 'normal' : 'full'
      return await on((await import('./millrace-sqlite.ts')).sqliteStore(file, mode))
    }
    case 'postgres':
      return await on((await import('./millrace-postgres.ts')).postgresStore(url))
    case 'redis':
      return await on((await import('./millrace-redis.ts')).redisStore(url))
    case 'nats':
      return await on((await import('./millrace-nats.ts')).natsStore(url, file))
    case 'rabbitmq':
      return await on((await import('./millrace-rabbitmq.ts')).rabbitmqStore(url, file))
    case 'kafka':
      return await on((await import('./millrace-kafka.ts')).kafkaStore(url, file))
    case 'sqs':
      return await on((await import('./millrace-sqs.ts')).sqsStore(url, file))
    default:
      throw new Error(`there is no backend of ours for "${variant}"`)
  }
}

async function openOn<Tx>(store: Store<Tx>, concurrency: number): Promise<Opened> {
  const { transport, keeps } = store
  const parts = { transport, queues: [queue], ...(keeps === undefined ? {} : { store: keeps }) }
  const app = await createMillrace(parts)
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
      const withInbox = await createMillrace<Tx>({ ...parts, inbox: store.inbox })
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
