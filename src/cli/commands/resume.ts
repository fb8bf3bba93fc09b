import type { Command } from '../command.ts'
import { DONE } from '../exit-code.ts'
import { queueNamed, withApp } from '../with-app.ts'

export const resume: Command = {
  name: 'resume',
  summary: 'hand out messages again',
  operands: '<queue>',
  minOperands: 1,
  maxOperands: 1,
  options: {},
  run: (call) =>
    withApp(call, 'check', async (open) => {
      const queue = queueNamed(open, call.operands[0] ?? '')
      await open.app.admin.resume(queue)
      if (call.out.json) call.out.data({ queue: queue.name, paused: false })
      else call.out.line(`resumed ${queue.name}`)
      return DONE
    }),
}
