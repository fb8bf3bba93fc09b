import type { Command } from '../command.ts'
import { DONE, FAILED } from '../exit-code.ts'
import { deadLetterText } from '../message-text.ts'
import { queueNamed, withApp } from '../with-app.ts'

export const dlqShow: Command = {
  name: 'dlq show',
  summary: 'show one dead letter with payload and every recorded attempt',
  operands: '<queue> [id]',
  minOperands: 1,
  maxOperands: 2,
  options: {},
  notes: ['Without an id: the newest. With --verbose the stacks too.'],
  run: (call) =>
    withApp(call, 'check', async (open) => {
      const [name = '', id] = call.operands
      const queue = queueNamed(open, name)
      const desk = open.app.admin.deadLetters
      const found =
        id === undefined
          ? ((await desk.list(queue, { limit: 1 })).items[0] ?? null)
          : await desk.show(queue, id)
      if (found === null) {
        const which = id === undefined ? 'no dead letters' : `no dead letter ${JSON.stringify(id)}`
        call.out.note(`millrace: ${which} in queue "${queue.name}"`)
        if (call.out.json) call.out.data(null)
        return FAILED
      }
      if (call.out.json) {
        call.out.data(found)
        return DONE
      }
      for (const line of deadLetterText(found, call.out.verbose)) call.out.line(line)
      return DONE
    }),
}
