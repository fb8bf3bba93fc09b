// Works; asked to, it kills itself when a copy or a dead letter is confirmed and the position behind it is not committed.
import { type Connector, PermanentError } from 'millrace'
import { appOn, noteRun, type Place, queueOf } from './kafka-between-app.ts'
import { aroundSettlements, dieNow } from './mortal.ts'

const [, , json = '', dies] = process.argv
const place: Place = JSON.parse(json)
let hasFailed = false

/** The layers put copies and dead letters where they go before they settle what stands for them here. */
const mortal = (connector: Connector): Connector =>
  aroundSettlements(connector, (batch, settle) => {
    if (hasFailed && dies === 'dies') dieNow()
    return settle(batch)
  })

const { app } = await appOn(place, mortal)
app.work(
  queueOf(place),
  async ({ payload: { n } }, ctx) => {
    noteRun(place, n)
    if (place.ends === 'dead') {
      hasFailed = true
      throw new PermanentError('never')
    }
    if (dies === 'dies') {
      hasFailed = true
      throw new Error('now and then')
    }
    await ctx.tx((tx) => {
      tx.prepare('INSERT INTO effect VALUES (?)').run(n)
    })
  },
  { concurrency: 10 },
)
await app.start()
process.on('SIGTERM', () => void app.close({ timeoutMs: 1_000 }))
