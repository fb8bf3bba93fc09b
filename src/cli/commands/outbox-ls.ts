import type { Command } from '../command.ts'
import { DONE } from '../exit-code.ts'
import { pageAsked, pagingOptions, showPage } from '../paging.ts'
import { timeText } from '../terminal-text.ts'
import { queueNamed, withApp } from '../with-app.ts'

export const outboxLs: Command = {
  name: 'outbox ls',
  summary: 'list messages of the outbox that the transport did not take',
  operands: '<queue>',
  minOperands: 1,
  maxOperands: 1,
  options: pagingOptions,
  run: (call) => {
    const asked = pageAsked(call)
    return withApp(call, 'check', async (open) => {
      const queue = queueNamed(open, call.operands[0] ?? '')
      showPage(call, await open.app.admin.outbox.list(queue, asked), {
        nothing: `nothing for queue "${queue.name}" is stuck in the outbox`,
        head: ['ID', 'KEY', 'TRIES', 'ADDED AT', 'NEXT TRY AT', 'LAST ERROR'],
        row: ({ messageId, orderingKey = '', tries, addedAt, nextTryAt, lastError = '' }) => [
          messageId,
          orderingKey,
          String(tries),
          timeText(addedAt),
          timeText(nextTryAt),
          lastError,
        ],
      })
      return DONE
    })
  },
}
