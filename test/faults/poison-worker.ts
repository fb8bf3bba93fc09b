// A worker whose process dies of one message, while its neighbours are still at work.
//   node poison-worker.ts PLACE
import { setTimeout as sleep } from 'node:timers/promises'
import { appOn, note, type Place, POISON, queueOf } from './poison-app.ts'

const place: Place = JSON.parse(process.argv[2] ?? '')
const app = await appOn(place)
app.work(
  queueOf(place),
  async ({ payload: { n } }) => {
    note(place, 'begun', n)
    if (n === POISON) {
      await sleep(50)
      note(place, 'killed', n)
      process.kill(process.pid, 'SIGKILL')
      // The signal may take a moment; nothing of ours may run in it.
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
    }
    await sleep(150)
    note(place, 'done', n)
  },
  { concurrency: 50 },
)
await app.start()
