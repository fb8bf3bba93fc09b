// Works on the limited queue until it is killed: `node limited-worker.ts PLACE`.

import { setTimeout as wait } from 'node:timers/promises'
import { read } from '../../src/model/probe.ts'
import { limited, note, openLimited, type RunEvent, STEP_MS } from './limited-app.ts'

const place = JSON.parse(process.argv[2] ?? '')
const app = await openLimited(place)
let runs = 0

app.work(
  limited,
  async ({ payload: { n, tenant, takesMs } }, { signal }) => {
    runs += 1
    const run = `${process.pid}:${runs}`
    const say = (what: RunEvent['what'], code?: string): void =>
      note(place.recordFile, {
        ...{ pid: process.pid, run, at: Date.now(), what, n, tenant },
        ...(code === undefined ? {} : { code }),
      })
    say('begin')
    // In small steps, and not by the time of day: one that was stopped still has work to do when it wakes up.
    for (let left = takesMs; left > 0 && !signal.aborted; left -= STEP_MS) await wait(STEP_MS)
    if (signal.aborted) say('told', String(read(signal.reason, 'code')))
    say('end')
    signal.throwIfAborted()
  },
  { concurrency: 8 },
)
await app.start()
