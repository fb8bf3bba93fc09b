import { BACKENDS, parcel, type Question, RATE_FIGURES, startMeter } from './contender.ts'

const CALLERS = 64

export const question: Question = {
  id: 'enqueue-callers',
  title: `Enqueue, ${CALLERS} callers at once`,
  how: `${CALLERS} callers in one process, each awaits its send before the next.`,
  figures: RATE_FIGURES,
  share: 1,
  limitMs: 2_000,
  backends: BACKENDS,
  async ask({ open, messages, limitMs }) {
    const opened = await open()
    await opened.send(parcel(0))
    const meter = startMeter()
    let sent = 0
    const caller = async (): Promise<void> => {
      while (sent < messages && meter.elapsedMs() < limitMs) {
        sent += 1
        await opened.send(parcel(sent))
      }
    }
    await Promise.all(Array.from({ length: CALLERS }, caller))
    const figures = meter.perMessage(sent)
    await opened.close()
    return figures
  },
}
