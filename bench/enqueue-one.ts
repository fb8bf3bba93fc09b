import { nowMs, parcel, type Question } from './contender.ts'

export const question: Question = {
  id: 'enqueue-one',
  title: 'Enqueue, one by one',
  how: 'One caller awaits each send before the next.',
  figures: [{ name: 'perSecond', unit: 'messages/s', better: 'more' }],
  share: 0.5,
  limitMs: 2_000,
  backends: ['memory', 'sqlite', 'postgres'],
  async ask({ open, messages, limitMs }) {
    const opened = await open()
    await opened.send(parcel(0))
    const from = nowMs()
    let sent = 0
    while (sent < messages && nowMs() - from < limitMs) {
      await opened.send(parcel(sent))
      sent += 1
    }
    const perSecond = (sent / (nowMs() - from)) * 1_000
    await opened.close()
    return { perSecond }
  },
}
