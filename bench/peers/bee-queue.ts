import Queue from 'bee-queue'
import type { Opened, Parcel, Place } from '../contender.ts'

const NAME = 'parcels'
const CONCURRENCY = 256

export async function open(place: Place, _variant: string): Promise<Opened> {
  const settings = { redis: { url: place.url }, removeOnSuccess: true, storeJobs: false }
  const queue = new Queue<Parcel>(NAME, { ...settings, isWorker: true, getEvents: false })
  await queue.ready()
  return {
    async send(parcel) {
      await queue.createJob(parcel).save()
    },
    async sendMany(parcels) {
      const failures = await queue.saveAll(parcels.map((parcel) => queue.createJob(parcel)))
      for (const failure of failures.values()) throw failure
    },
    async work(run) {
      queue.process(CONCURRENCY, async ({ data }) => run(data))
    },
    async remaining() {
      const { waiting, active, delayed } = await queue.checkHealth()
      return waiting + active + delayed
    },
    close: () => queue.close(),
  }
}
