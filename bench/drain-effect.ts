import { type Question, RATE_FIGURES } from './contender.ts'
import { drain } from './drain.ts'
import { fill } from './enqueue-bulk.ts'

export const question: Question = {
  id: 'drain-effect',
  title: 'Drain, with one insert as the effect',
  how: 'As above, and each handler inserts one row, once per message even when it runs twice: `ctx.tx` and the inbox here, a key column written by hand or a transaction of the queue there.',
  figures: RATE_FIGURES,
  share: 0.2,
  limitMs: 15_000,
  backends: ['memory', 'sqlite', 'postgres'],
  async ask({ open, messages, limitMs }) {
    const opened = await open()
    const { workWithEffect, effects } = opened
    if (!workWithEffect || !effects) throw new Error('this contender has no worker with an effect')
    const sent = await fill(opened, messages, Number.POSITIVE_INFINITY)
    const figures = await drain(opened, sent, limitMs, workWithEffect)
    const inserted = await effects()
    // Within the limit all were handled, and then every effect must be there exactly once.
    if ((await opened.remaining()) === 0 && inserted !== sent) {
      throw new Error(`${sent} messages had ${inserted} effects`)
    }
    await opened.close()
    return figures
  },
}
