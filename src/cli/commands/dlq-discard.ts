import { actorOf } from '../actor.ts'
import type { Command } from '../command.ts'
import { DONE, FAILED } from '../exit-code.ts'
import { UsageError } from '../usage-error.ts'
import { queueNamed, withApp } from '../with-app.ts'

export const dlqDiscard: Command = {
  name: 'dlq discard',
  summary: 'throw dead letters away for good',
  operands: '<queue> <id…>',
  minOperands: 2,
  maxOperands: 10_001,
  options: { reason: { value: '<text>', help: 'why; kept in the audit log (required)' } },
  run: (call) => {
    const reason = call.value('reason')
    if (reason === undefined || reason.trim() === '') {
      throw new UsageError(
        'dlq discard needs --reason <text>: it is what the audit log keeps of them',
      )
    }
    return withApp(call, 'check', async (open) => {
      const [name = '', ...ids] = call.operands
      const queue = queueNamed(open, name)
      const result = await open.app.admin.deadLetters.discard(queue, {
        ids,
        reason,
        actor: actorOf(call.io),
      })
      if (call.out.json) call.out.data(result)
      else call.out.line(`discarded ${result.discarded} of ${new Set(ids).size}`)
      if (result.notFound.length > 0) {
        call.out.note(`millrace: not among the dead letters: ${result.notFound.join(', ')}`)
      }
      return result.notFound.length > 0 ? FAILED : DONE
    })
  },
}
