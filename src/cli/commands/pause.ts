import type { Command } from '../command.ts'
import { DONE } from '../exit-code.ts'
import { queueNamed, withApp } from '../with-app.ts'

export const pause: Command = {
  name: 'pause',
  summary: 'stop handing out messages, on all workers, until resume',
  operands: '<queue>',
  minOperands: 1,
  maxOperands: 1,
  options: {},
  notes: ['Remembered across restarts. Sending goes on; what runs may finish.'],
  run: (call) =>
    withApp(call, 'check', async (open) => {
      const queue = queueNamed(open, call.operands[0] ?? '')
      await open.app.admin.pause(queue)
      if (call.out.json) call.out.data({ queue: queue.name, paused: true })
      else call.out.line(`paused ${queue.name}`)
      return DONE
    }),
}
