import { actorOf } from '../actor.ts'
import type { Command } from '../command.ts'
import { UsageError } from '../usage-error.ts'
import { outboxAct } from './outbox-act.ts'

export const outboxDiscard: Command = {
  name: 'outbox discard',
  summary: 'throw stuck messages away for good',
  operands: '<queue> <id…>',
  minOperands: 2,
  maxOperands: 10_001,
  options: { reason: { value: '<text>', help: 'why; kept beside the outbox (required)' } },
  notes: ['What waits behind them, of the same ordering key, goes on without them.'],
  run: (call) => {
    const reason = call.value('reason')
    if (reason === undefined || reason.trim() === '') {
      throw new UsageError('outbox discard needs --reason <text>: it is what is kept of them')
    }
    const actor = actorOf(call.io)
    return outboxAct(call, 'discarded', (outbox, queue, ids) =>
      outbox.discard(queue, { ids, reason, actor }),
    )
  },
}
