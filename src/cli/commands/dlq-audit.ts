import type { Command } from '../command.ts'
import { DONE } from '../exit-code.ts'
import { table, timeText } from '../terminal-text.ts'
import { wholeNumber } from '../whole-number.ts'
import { queueNamed, withApp } from '../with-app.ts'

export const dlqAudit: Command = {
  name: 'dlq audit',
  summary: 'show who redrove or discarded which dead letter, when and why, newest first',
  operands: '<queue>',
  minOperands: 1,
  maxOperands: 1,
  options: { limit: { value: '<n>', help: '1 to 500; default 50' } },
  run: (call) => {
    const limit = wholeNumber('--limit', call.value('limit'), { min: 1, max: 500 })
    return withApp(call, 'check', async (open) => {
      const queue = queueNamed(open, call.operands[0] ?? '')
      const entries = await open.app.admin.deadLetters.audit(
        queue,
        limit === undefined ? {} : { limit },
      )
      if (call.out.json) {
        call.out.data(entries)
        return DONE
      }
      if (entries.length === 0)
        call.out.note(`nothing was redriven or discarded in queue "${queue.name}"`)
      else {
        const rows = entries.map((one) => [
          timeText(one.at),
          one.act,
          one.messageId,
          one.actor,
          one.reason,
        ])
        for (const line of table(['AT', 'ACT', 'ID', 'ACTOR', 'REASON'], rows)) call.out.line(line)
      }
      return DONE
    })
  },
}
