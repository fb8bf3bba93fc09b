// Handles steps: `node stopped-worker.ts PLACE RECORD`. Stops itself (SIGSTOP) in its first handler, and calls ctx.tx as soon as it
// goes on: nothing that would tell it that its session is over has run by then.
import { hasCode } from 'millrace'
import { recorder } from './crash/recorder.ts'
import { type OrderPlace, openPlace } from './order-place.ts'

const [place = '', file = ''] = process.argv.slice(2)
const record = recorder(file)
const { app, steps } = await openPlace(JSON.parse(place) as OrderPlace)
let isFirst = true

app.work(
  steps,
  async ({ payload: { key, number } }, ctx) => {
    const step = `${key} ${number}`
    if (isFirst) {
      isFirst = false
      record.note({ what: 'stopped', pid: process.pid })
      process.kill(process.pid, 'SIGSTOP')
    }
    try {
      await ctx.tx((tx) => {
        tx.prepare('INSERT INTO step (key, number) VALUES (?, ?)').run(key, number)
      })
      record.note({ what: 'made', key: step })
    } catch (error) {
      const code = hasCode(error, 'MILLRACE_LEASE_LOST') ? 'MILLRACE_LEASE_LOST' : String(error)
      record.note({ what: 'refused', key: step, code })
      throw error
    }
  },
  { concurrency: 6 },
)
await app.start()
