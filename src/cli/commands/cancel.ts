import type { Command } from '../command.ts'
import { DONE, FAILED } from '../exit-code.ts'
import { queueNamed, withApp } from '../with-app.ts'

export const cancel: Command = {
  name: 'cancel',
  summary: 'remove a message that is not dead; a run in flight is told',
  operands: '<queue> <id>',
  minOperands: 2,
  maxOperands: 2,
  options: {},
  run: (call) =>
    withApp(call, 'check', async (open) => {
      const [name = '', id = ''] = call.operands
      const queue = queueNamed(open, name)
      const cancelled = await open.app.admin.messages.cancel(queue, id)
      if (call.out.json) call.out.data({ id, cancelled })
      else if (cancelled) call.out.line(`cancelled ${id}`)
      if (!cancelled) {
        call.out.note(
          `millrace: no message ${JSON.stringify(id)} waits or runs in queue "${queue.name}"`,
        )
      }
      return cancelled ? DONE : FAILED
    }),
}
