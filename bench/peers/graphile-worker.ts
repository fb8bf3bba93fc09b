import { Logger, makeWorkerUtils, type Runner, run as runWorker } from 'graphile-worker'
import type { Opened, Parcel, Place } from '../contender.ts'
import { EFFECT_COUNT, EFFECT_INSERT, EFFECT_TABLE } from '../effect-sql.ts'

const TASK = 'parcels'
const silent = new Logger(() => () => {})

/** The settings of its own performance page. */
function preset(place: Place): GraphileConfig.Preset {
  return {
    worker: {
      connectionString: place.url,
      concurrentJobs: 24,
      maxPoolSize: 25,
      localQueue: { size: 500 },
      completeJobBatchDelay: 0,
      failJobBatchDelay: 0,
      logger: silent,
    },
  }
}

export async function open(place: Place, _variant: string): Promise<Opened> {
  const utils = await makeWorkerUtils({ preset: preset(place) })
  await utils.migrate()
  const runners: Runner[] = []
  const count = (sql: string): Promise<number> =>
    utils.withPgClient(async (client) => Number((await client.query(sql)).rows[0]?.count))
  return {
    async send(parcel) {
      await utils.addJob(TASK, parcel)
    },
    async sendMany(parcels) {
      await utils.addJobs(parcels.map((payload) => ({ identifier: TASK, payload })))
    },
    async work(run) {
      const taskList = { [TASK]: (payload: unknown) => run(asParcel(payload)) }
      runners.push(await runWorker({ preset: preset(place), taskList, noHandleSignals: true }))
    },
    async workWithEffect(run) {
      await utils.withPgClient((client) => client.query(EFFECT_TABLE))
      const taskList = {
        [TASK]: async (payload: unknown, helpers: Helpers) => {
          const parcel = asParcel(payload)
          const values = [String(helpers.job.id), parcel.note]
          const query = { name: 'effect', text: EFFECT_INSERT, values }
          await helpers.withPgClient((client) => client.query(query))
          run(parcel)
        },
      }
      runners.push(await runWorker({ preset: preset(place), taskList, noHandleSignals: true }))
    },
    remaining: () => count('SELECT count(*) AS count FROM graphile_worker.jobs'),
    effects: () => count(EFFECT_COUNT),
    async close() {
      for (const runner of runners) await runner.stop()
      await utils.release()
    },
  }
}

type Helpers = import('graphile-worker').JobHelpers

function asParcel(payload: unknown): Parcel {
  return payload as Parcel
}
