import { setTimeout as sleep } from 'node:timers/promises'
import { BACKENDS, nowMs, parcel, type Question } from './contender.ts'

export const question: Question = {
  id: 'idle',
  title: 'Idle cost',
  how: 'A started worker with nothing to do: CPU time of its process per second (the database server not counted).',
  figures: [{ name: 'cpuMsPerSecond', unit: 'CPU ms/s', better: 'less' }],
  share: 0,
  limitMs: 4_000,
  backends: BACKENDS,
  async ask({ open, limitMs }) {
    const opened = await open()
    const first = Promise.withResolvers<void>()
    await opened.work(() => first.resolve())
    await opened.send(parcel(0))
    await first.promise
    // What start-up left to compile and collect is no cost of idling.
    await sleep(Math.min(1_000, limitMs))
    const from = nowMs()
    const before = process.cpuUsage()
    await sleep(limitMs)
    const { user, system } = process.cpuUsage(before)
    const cpuMsPerSecond = (user + system) / (nowMs() - from)
    await opened.close()
    return { cpuMsPerSecond }
  },
}
