import { actorOf } from '../actor.ts'
import type { Command } from '../command.ts'
import { DONE, FAILED } from '../exit-code.ts'
import { queueNamed, withApp } from '../with-app.ts'

export const keysSkip: Command = {
  name: 'keys skip',
  summary: 'let halted keys go on without the message that died',
  operands: '<queue> <key…>',
  minOperands: 2,
  maxOperands: 1_001,
  options: {
    reason: { value: '<text>', help: 'why; kept in the audit log' },
  },
  notes: ['The dead letters stay where they are; a later redrive of them comes out of order.'],
  run: (call) => {
    const reason = call.value('reason')
    return withApp(call, 'check', async (open) => {
      const [name = '', ...keys] = call.operands
      const queue = queueNamed(open, name)
      const result = await open.app.admin.keys.skip(queue, {
        keys,
        actor: actorOf(call.io),
        ...(reason === undefined ? {} : { reason }),
      })
      if (call.out.json) call.out.data(result)
      else call.out.line(`skipped ${result.moved.length} of ${new Set(keys).size}`)
      if (result.notFound.length > 0) {
        call.out.note(`millrace: not halted: ${result.notFound.join(', ')}`)
      }
      return result.notFound.length > 0 ? FAILED : DONE
    })
  },
}
