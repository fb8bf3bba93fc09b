import { PgBoss } from 'pg-boss'
import type { Opened, Parcel, Place } from '../contender.ts'
import { EFFECT_COUNT, EFFECT_INSERT, EFFECT_TABLE } from '../effect-sql.ts'

const QUEUE = 'parcels'
/** Each worker fetches, handles and completes this many at a time. */
const BATCH = 500
const WORKERS = 4
/** One transaction per batch: one failing message rolls its neighbours back. */
const EFFECT_BATCH = 50

export async function open(place: Place, _variant: string): Promise<Opened> {
  const boss = new PgBoss({ connectionString: place.url, useListenNotify: true })
  boss.on('error', console.error)
  await boss.start()
  await boss.createQueue(QUEUE, { notify: true })
  const db = boss.getDb()
  const count = async (sql: string): Promise<number> => {
    const { rows } = await db.executeSql(sql)
    return Number(rows[0]?.count)
  }
  const polling = { pollingIntervalSeconds: 0.5, burstWhenBatchFull: true }
  return {
    async send(parcel) {
      await boss.send(QUEUE, parcel)
    },
    async sendMany(parcels) {
      await boss.insert(
        QUEUE,
        parcels.map((data) => ({ data })),
      )
    },
    async work(run) {
      const options = { ...polling, batchSize: BATCH, localConcurrency: WORKERS }
      await boss.work<Parcel>(QUEUE, options, async (jobs) => {
        for (const job of jobs) run(job.data)
      })
    },
    async workWithEffect(run) {
      await db.executeSql(EFFECT_TABLE)
      const options = {
        ...polling,
        batchSize: EFFECT_BATCH,
        localConcurrency: WORKERS,
        transactional: true,
      } as const
      await boss.work<Parcel>(QUEUE, options, async (jobs, tx) => {
        for (const job of jobs) {
          await tx.executeSql(EFFECT_INSERT, [job.id, job.data.note])
          run(job.data)
        }
      })
    },
    remaining: () => count("SELECT count(*) FROM pgboss.job WHERE state < 'completed'"),
    effects: () => count(EFFECT_COUNT),
    async close() {
      await boss.stop({ graceful: true, timeout: 10_000 })
    },
  }
}
