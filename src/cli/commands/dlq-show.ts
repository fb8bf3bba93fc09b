import type { Command } from '../command.ts'
import { deadLetterText } from '../message-text.ts'
import { showOne } from '../show-one.ts'
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
      const which = id === undefined ? 'no dead letters' : `no dead letter ${JSON.stringify(id)}`
      return showOne(call, found, `${which} in queue "${queue.name}"`, deadLetterText)
    }),
}
