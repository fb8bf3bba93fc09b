import { parcel, type Question, RATE_FIGURES, startMeter } from './contender.ts'

export const question: Question = {
  id: 'enqueue-one',
  title: 'Enqueue, one by one',
  how: 'One caller awaits each send before the next.',
  figures: RATE_FIGURES,
  share: 0.5,
  limitMs: 2_000,
  backends: ['memory', 'sqlite', 'postgres', 'redis', 'nats'],
  async ask({ open, messages, limitMs }) {
    const opened = await open()
    await opened.send(parcel(0))
    const meter = startMeter()
    let sent = 0
    while (sent < messages && meter.elapsedMs() < limitMs) {
      await opened.send(parcel(sent))
      sent += 1
    }
    const figures = meter.perMessage(sent)
    await opened.close()
    return figures
  },
}
