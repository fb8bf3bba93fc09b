import type { Command } from '../command.ts'
import { DONE } from '../exit-code.ts'
import { table, timeText } from '../terminal-text.ts'
import { wholeNumber } from '../whole-number.ts'
import { queueNamed, withApp } from '../with-app.ts'

export const keysLs: Command = {
  name: 'keys ls',
  summary: 'list ordering keys that stand still because their message died',
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
      const page = await open.app.admin.keys.list(queue, {
        ...(limit === undefined ? {} : { limit }),
        ...(cursor === undefined ? {} : { cursor }),
      })
      if (call.out.json) {
        call.out.data(page)
        return DONE
      }
      if (page.items.length === 0) call.out.note(`no halted keys in queue "${queue.name}"`)
      else {
        const rows = page.items.map(({ key, haltedAt, waiting, messageId }) => [
          key,
          timeText(haltedAt),
          String(waiting),
          messageId,
        ])
        for (const line of table(['KEY', 'HALTED AT', 'WAITING', 'DEAD LETTER'], rows))
          call.out.line(line)
      }
      if (page.cursor !== null) call.out.note(`more: --cursor ${page.cursor}`)
      return DONE
    })
  },
}
