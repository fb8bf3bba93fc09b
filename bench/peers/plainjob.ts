import Database from 'better-sqlite3'
import { better, defineQueue, defineWorker, JobStatus } from 'plainjob'
import type { Opened, Parcel, Place } from '../contender.ts'

const silent = { error: console.error, warn: console.warn, info() {}, debug() {} }
const TYPE = 'parcels'
/** plainjob only polls, every second by default; 5 ms so that latency is not the poll alone. */
const POLL_MS = 5

/** `variant`: `normal` is what plainjob sets itself, `full` is set on the user's handle after it. */
export async function open(place: Place, variant: string): Promise<Opened> {
  const db = new Database(place.file)
  const queue = defineQueue({ connection: better(db), logger: silent })
  if (variant === 'full') db.pragma('synchronous = FULL')
  const workers: { stop(): Promise<void>; ended: Promise<void> }[] = []
  const start = (handle: (data: string, id: number) => void): void => {
    const worker = defineWorker(TYPE, async (job) => handle(job.data, job.id), {
      queue,
      logger: silent,
      pollIntervall: POLL_MS,
    })
    workers.push({ stop: () => worker.stop(), ended: worker.start() })
  }
  return {
    async send(parcel) {
      queue.add(TYPE, parcel)
      await yieldTurn()
    },
    async sendMany(parcels) {
      queue.addMany(TYPE, [...parcels])
    },
    async work(run) {
      start((data) => run(parse(data)))
    },
    async workWithEffect(run) {
      db.exec('CREATE TABLE effects (key INTEGER PRIMARY KEY, note TEXT NOT NULL)')
      const insert = db.prepare('INSERT INTO effects VALUES (?, ?) ON CONFLICT DO NOTHING')
      start((data, id) => {
        const parcel = parse(data)
        insert.run(id, parcel.note)
        run(parcel)
      })
    },
    async remaining() {
      const count = (status: JobStatus): number => queue.countJobs({ type: TYPE, status })
      return count(JobStatus.Pending) + count(JobStatus.Processing)
    },
    async effects() {
      return Number(db.prepare('SELECT count(*) FROM effects').pluck().get())
    },
    async close() {
      for (const worker of workers) await worker.stop()
      await Promise.all(workers.map((worker) => worker.ended))
      queue.close()
    },
  }
}

/** Everything is synchronous; without this nothing else in the process would ever run between two sends. */
function yieldTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

function parse(data: string): Parcel {
  return JSON.parse(data)
}
