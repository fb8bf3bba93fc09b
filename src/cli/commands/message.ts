import type { Command } from '../command.ts'
import { messageText } from '../message-text.ts'
import { showOne } from '../show-one.ts'
import { queueNamed, withApp } from '../with-app.ts'

export const message: Command = {
  name: 'message',
  summary: 'show one message, whatever its state',
  operands: '<queue> <id>',
  minOperands: 2,
  maxOperands: 2,
  options: {},
  notes: ['A message that was handled is gone; so is one that was cancelled or discarded.'],
  run: (call) =>
    withApp(call, 'check', async (open) => {
      const [name = '', id = ''] = call.operands
      const queue = queueNamed(open, name)
      const found = await open.app.admin.messages.get(queue, id)
      const missing = `no message ${JSON.stringify(id)} in queue "${queue.name}"; it was handled, or never sent`
      return showOne(call, found, missing, messageText)
    }),
}
