// Handles steps until it is killed: `node order-worker.ts PLACE RECORD`. At SIGUSR2 it stops itself in the middle of its next
// handler, before the effect, with what it has in hand.
import { TransientError } from 'millrace'
import { recorder } from './crash/recorder.ts'
import { type OrderPlace, openPlace } from './order-place.ts'

const [place = '', file = ''] = process.argv.slice(2)
const record = recorder(file)
const { app, steps } = await openPlace(JSON.parse(place) as OrderPlace)
let stops = false
process.on('SIGUSR2', () => {
  stops = true
})

app.work(
  steps,
  async ({ payload: { key, number }, attempt }, ctx) => {
    if (stops) {
      stops = false
      record.note({ what: 'started', key: `${key} ${number}`, attempt })
      record.note({ what: 'stopped', pid: process.pid })
      process.kill(process.pid, 'SIGSTOP')
    }
    // Some of them come again, and what follows has to wait.
    if (attempt === 1 && number % 9 === 0) throw new TransientError('not yet')
    await ctx.tx((tx) => {
      tx.prepare('INSERT INTO step (key, number) VALUES (?, ?)').run(key, number)
    })
  },
  { concurrency: 6 },
)
await app.start()
