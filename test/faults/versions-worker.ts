// Sorts by version until it is killed: `node versions-worker.ts FILE`.
import { DatabaseSync } from 'node:sqlite'
import { createMillrace } from 'millrace'
import { sqliteInbox } from 'millrace/inbox'
import { sqlite } from 'millrace/sqlite'
import { latestOnly, reorder } from 'millrace/versions'
import { silentLogger } from '../../src/model/logger.ts'
import { newestQueue, stepQueue } from './versions-queues.ts'

const [file = ''] = process.argv.slice(2)
const db = new DatabaseSync(file)
const app = await createMillrace({
  transport: sqlite({ file }),
  queues: [stepQueue, newestQueue],
  inbox: sqliteInbox({ db }),
  logger: silentLogger,
})
const key = ({ entity }: { entity: string }): string => entity
const version = ({ number }: { number: number }): number => number
const inOrder = reorder({ queue: stepQueue, key, version })
const newest = latestOnly({ queue: newestQueue, key, version })

app.work(
  stepQueue,
  async (message, ctx) => {
    await ctx.tx(
      inOrder(message, (tx, { entity, number }) => {
        tx.prepare('INSERT INTO step (entity, number) VALUES (?, ?)').run(entity, number)
      }),
    )
  },
  { concurrency: 8 },
)
app.work(
  newestQueue,
  async (message, ctx) => {
    const { entity, number } = message.payload
    await ctx.tx(
      newest(message, (tx) => {
        tx.prepare('INSERT INTO newest (entity, number) VALUES (?, ?)').run(entity, number)
      }),
    )
  },
  { concurrency: 8 },
)
await app.start()
