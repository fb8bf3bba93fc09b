import { setTimeout as sleep } from 'node:timers/promises'
import {
  BACKENDS,
  type Figures,
  type Opened,
  type Parcel,
  type Question,
  RATE_FIGURES,
  startMeter,
} from './contender.ts'
import { fill } from './enqueue-bulk.ts'

export const question: Question = {
  id: 'drain',
  title: 'Drain',
  how: 'A full queue, a handler that only counts; the time runs from the start of the worker until the store says that nothing is left.',
  figures: RATE_FIGURES,
  share: 1,
  limitMs: 20_000,
  backends: BACKENDS,
  async ask({ open, messages, limitMs }) {
    const filling = await open()
    // A store that lives in the process keeps what was sent only while it is open.
    const sent = await fill(filling, messages, Number.POSITIVE_INFINITY)
    const figures = await drain(filling, sent, limitMs, (run) => filling.work(run))
    await filling.close()
    return figures
  },
}

type StartWork = (run: (parcel: Parcel) => void) => Promise<void>

/** Handled counts while the limit lasts; when all were handled, the store must agree before the clock stops. */
export async function drain(
  opened: Opened,
  messages: number,
  limitMs: number,
  start: StartWork,
): Promise<Figures> {
  const all = Promise.withResolvers<void>()
  const limit = setTimeout(() => all.resolve(), limitMs)
  let handled = 0
  const meter = startMeter()
  await start(() => {
    handled += 1
    if (handled >= messages) all.resolve()
  })
  await all.promise
  clearTimeout(limit)
  if (handled === 0) throw new Error(`nothing of ${messages} messages was handled in ${limitMs} ms`)
  if (handled < messages) return meter.perMessage(handled)
  while ((await opened.remaining()) > 0) await sleep(1)
  return meter.perMessage(messages)
}
