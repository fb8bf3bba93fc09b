import type { Command } from '../command.ts'
import { DONE } from '../exit-code.ts'
import { table, timeText } from '../terminal-text.ts'
import { wholeNumber } from '../whole-number.ts'
import { queueNamed, withApp } from '../with-app.ts'

export const outboxLs: Command = {
  name: 'outbox ls',
  summary: 'list messages of the outbox that the transport did not take',
  operands: '<queue>',
  minOperands: 1,
  maxOperands: 1,
  options: {
    limit: { value: '<n>', help: '1 to 500; default 50' },
    cursor: { value: '<cursor>', help: 'go on where the page before ended' },
  },
  run: (call) => {
    const limit = wholeNumber('--limit', call.value('limit'), { min: 1, max: 500 })
    const cursor = call.value('cursor')
    return withApp(call, 'check', async (open) => {
      const queue = queueNamed(open, call.operands[0] ?? '')
      const page = await open.app.admin.outbox.list(queue, {
        ...(limit === undefined ? {} : { limit }),
        ...(cursor === undefined ? {} : { cursor }),
      })
      if (call.out.json) {
        call.out.data(page)
        return DONE
      }
      if (page.items.length === 0) {
        call.out.note(`nothing for queue "${queue.name}" is stuck in the outbox`)
      } else {
        const rows = page.items.map(
          ({ messageId, orderingKey = '', tries, addedAt, nextTryAt }) => [
            messageId,
            orderingKey,
            String(tries),
            timeText(addedAt),
            timeText(nextTryAt),
          ],
        )
        const head = ['ID', 'KEY', 'TRIES', 'ADDED AT', 'NEXT TRY AT']
        for (const line of table(head, rows)) call.out.line(line)
      }
      if (page.cursor !== null) call.out.note(`more: --cursor ${page.cursor}`)
      return DONE
    })
  },
}
