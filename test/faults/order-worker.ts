// Handles steps until it is killed: `node order-worker.ts PLACE RECORD THROTTLES SEED`. At SIGUSR2 it stops itself in the middle of its
// next handler, before the effect, with what it has in hand.
import { type Logger, silentLogger, ThrottledError, TransientError } from 'millrace'
import { recorder } from './crash/recorder.ts'
import { type OrderPlace, openPlace } from './order-place.ts'
import { openThrottles } from './order-throttles.ts'

const [place = '', file = '', throttlesFile = '', seed = ''] = process.argv.slice(2)
const record = recorder(file)
const throttles = openThrottles(throttlesFile, seed)
/** Its claim had ended, or the backend was away: what became of the run could not be told. */
const noteUnsettled: Logger['warn'] = (_, fields) => {
  if (fields?.['as'] !== undefined) throttles.spent(String(fields['messageId']))
}
const { app, steps } = await openPlace(JSON.parse(place) as OrderPlace, {
  ...silentLogger,
  debug: (_, fields) => {
    if (fields?.['code'] === 'MILLRACE_HANDLER_TIMEOUT')
      throttles.spent(String(fields['messageId']))
  },
  warn: noteUnsettled,
  error: noteUnsettled,
})
let stops = false
process.on('SIGUSR2', () => {
  stops = true
})

app.work(
  steps,
  async ({ id, payload: { key, number }, attempt }, ctx) => {
    if (stops) {
      stops = false
      record.note({ what: 'started', key: `${key} ${number}`, attempt })
      record.note({ what: 'stopped', pid: process.pid })
      process.kill(process.pid, 'SIGSTOP')
    }
    // Some of them come again, and what follows has to wait.
    const waitMs = throttles.began({ id, key, number }, attempt)
    if (waitMs !== undefined) throw new ThrottledError('later', { retryAfterMs: waitMs })
    if (attempt === 1 && number % 9 === 0) throw new TransientError('not yet')
    await ctx.tx((tx) => {
      tx.prepare('INSERT INTO step (key, number) VALUES (?, ?)').run(key, number)
    })
  },
  { concurrency: 6 },
)
await app.start()
