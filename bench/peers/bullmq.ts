import { Queue, Worker } from 'bullmq'
import { Redis } from 'ioredis'
import type { Opened, Parcel, Place } from '../contender.ts'

const NAME = 'parcels'
const CONCURRENCY = 256
/** Otherwise every message that is done stays in memory. */
const OPTIONS = { removeOnComplete: true, removeOnFail: true } as const

export async function open(place: Place, _variant: string): Promise<Opened> {
  const connect = (): Redis => new Redis(place.url, { maxRetriesPerRequest: null })
  const connections = [connect()]
  const queue = new Queue(NAME, { connection: connections[0] as Redis })
  await queue.waitUntilReady()
  const workers: Worker[] = []
  return {
    async send(parcel) {
      await queue.add(NAME, parcel, OPTIONS)
    },
    async sendMany(parcels) {
      await queue.addBulk(parcels.map((data) => ({ name: NAME, data, opts: OPTIONS })))
    },
    async work(run) {
      const connection = connect()
      connections.push(connection)
      const handle = async ({ data }: { data: Parcel }): Promise<void> => run(data)
      const worker = new Worker(NAME, handle, { connection, concurrency: CONCURRENCY })
      await worker.waitUntilReady()
      workers.push(worker)
    },
    async remaining() {
      const counts = await queue.getJobCounts('waiting', 'active', 'delayed', 'prioritized')
      return Object.values(counts).reduce((sum, count) => sum + count, 0)
    },
    async close() {
      for (const worker of workers) await worker.close()
      await queue.close()
      for (const connection of connections) connection.disconnect()
    },
  }
}
