import { type App, createMillrace, defineQueue, type QueueDefinition } from 'millrace'
import { z } from 'zod'
import type { Opened, Parcel, Place } from './contender.ts'
import type { Store } from './store.ts'

const common = { owner: 'bench', capacity: 'unbounded' } as const
const parcel = { n: z.number(), at: z.number(), note: z.string() }
const parcels = defineQueue({ name: 'parcels', ...common, payload: z.object(parcel) })

function inOrder(name: string) {
  const payload = z.object({ ...parcel, key: z.string() })
  return defineQueue({
    ...{ name, ...common, payload },
    ...{ orderingKey: ({ key }: z.infer<typeof payload>) => key, onDead: 'continue' },
  })
}

function fairly(name: string) {
  const payload = z.object({ ...parcel, key: z.string() })
  return defineQueue({
    ...{ name, ...common, payload },
    fairBy: ({ key }: z.infer<typeof payload>) => key,
  })
}

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
  const parts = { transport, ...(keeps === undefined ? {} : { store: keeps }) }
  const apps: App<Tx>[] = []
  const open = async (
    queue: typeof parcels | ReturnType<typeof inOrder> | ReturnType<typeof fairly>,
    more: { readonly inbox?: typeof store.inbox } = {},
  ): Promise<App<Tx>> => {
    const app = await createMillrace<Tx>({ ...parts, ...more, queues: [queue] })
    apps.push(app)
    return app
  }
  const app = await open(parcels)
  return {
    ...acts(app, parcels, concurrency),
    async workWithEffect(run: (parcel: Parcel) => void) {
      await store.prepare()
      const withInbox = await open(parcels, { inbox: store.inbox })
      withInbox.work(
        parcels,
        async ({ id, payload }, ctx) => {
          await ctx.tx((tx) => store.effect(tx, id, payload.note))
          run(payload)
        },
        { concurrency },
      )
      await withInbox.start()
    },
    effects: () => store.effects(),
    async inOrder(name) {
      const queue = inOrder(name)
      const ordered = await open(queue)
      return { ...acts(ordered, queue, concurrency), close: () => ordered.close() }
    },
    async fairly(name) {
      const queue = fairly(name)
      const fair = await open(queue)
      return { ...acts(fair, queue, concurrency), close: () => fair.close() }
    },
    async close() {
      for (const one of apps.reverse()) await one.close()
      await store.close()
    },
  }
}

type Acts = Pick<Opened, 'send' | 'sendMany' | 'work' | 'remaining'>

function acts<Tx, Payload extends Parcel>(
  app: App<Tx>,
  queue: QueueDefinition<Parcel, Payload>,
  concurrency: number,
): Acts {
  return {
    async send(parcel) {
      await app.send(queue, parcel)
    },
    async sendMany(parcels, priority = 0) {
      await app.sendBatch(queue, parcels, priority === 0 ? undefined : { priority })
    },
    async work(run) {
      app.work(queue, ({ payload }) => run(payload), { concurrency })
      await app.start()
    },
    async remaining() {
      const { depth, inFlight, scheduled } = await app.admin.stats(queue)
      return (depth ?? 0) + (inFlight ?? 0) + (scheduled ?? 0)
    },
  }
}
