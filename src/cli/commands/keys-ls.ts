import type { Command } from '../command.ts'
import { DONE } from '../exit-code.ts'
import { pageAsked, pagingOptions, showPage } from '../paging.ts'
import { timeText } from '../terminal-text.ts'
import { queueNamed, withApp } from '../with-app.ts'

export const keysLs: Command = {
  name: 'keys ls',
  summary: 'list ordering keys that stand still because their message died',
  operands: '<queue>',
  minOperands: 1,
  maxOperands: 1,
  options: pagingOptions,
  run: (call) => {
    const asked = pageAsked(call)
    return withApp(call, 'check', async (open) => {
      const queue = queueNamed(open, call.operands[0] ?? '')
      showPage(call, await open.app.admin.keys.list(queue, asked), {
        nothing: `no halted keys in queue "${queue.name}"`,
        head: ['KEY', 'HALTED AT', 'WAITING', 'DEAD LETTER'],
        row: ({ key, haltedAt, waiting, messageId }) => [
          key,
          timeText(haltedAt),
          String(waiting),
          messageId,
        ],
      })
      return DONE
    })
  },
}
