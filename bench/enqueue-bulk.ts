import {
  BACKENDS,
  type Opened,
  parcels,
  type Question,
  RATE_FIGURES,
  startMeter,
} from './contender.ts'

export const CHUNK = 1_000

export const question: Question = {
  id: 'enqueue-bulk',
  title: 'Bulk enqueue',
  how: `Calls of ${CHUNK.toLocaleString('en')} messages, one after another.`,
  figures: RATE_FIGURES,
  share: 1,
  limitMs: 10_000,
  backends: BACKENDS,
  async ask({ open, messages, limitMs }) {
    const opened = await open()
    await opened.send({ n: 0, at: 0, note: '' })
    const meter = startMeter()
    const sent = await fill(opened, messages, limitMs)
    const figures = meter.perMessage(sent)
    await opened.close()
    return figures
  },
}

/** Answers how many were sent within the limit. */
export async function fill(opened: Opened, messages: number, limitMs: number): Promise<number> {
  const { elapsedMs } = startMeter()
  let sent = 0
  while (sent < messages && elapsedMs() < limitMs) {
    const size = Math.min(CHUNK, messages - sent)
    await opened.sendMany(parcels(size, sent))
    sent += size
  }
  return sent
}
