import type { BreakerView } from '../../admin/admin.ts'
import type { Command } from '../command.ts'
import { DONE } from '../exit-code.ts'
import { table, timeText } from '../terminal-text.ts'
import { queueNamed, withApp } from '../with-app.ts'

export const breakers: Command = {
  name: 'breakers',
  summary: 'list downstreams that are left alone, held by hand, or have failed lately',
  operands: '[queue]',
  minOperands: 0,
  maxOperands: 1,
  options: {},
  notes: [
    'Of queues with a downstream whose breaker is shared through the store; with scope "process" only the process itself knows.',
  ],
  run: (call) =>
    withApp(call, 'check', async (open) => {
      const [wanted] = call.operands
      const queues = wanted === undefined ? open.config.queues : [queueNamed(open, wanted)]
      const found: BreakerView[] = []
      for (const queue of queues) found.push(...(await open.app.admin.breakers.list(queue)))
      if (call.out.json) call.out.data(found)
      else if (found.length === 0) call.out.note('no downstream is left alone, held or failing')
      else for (const line of table(HEAD, found.map(row))) call.out.line(line)
      return DONE
    }),
}

const HEAD = ['QUEUE', 'DOWNSTREAM', 'BREAKER', 'FAILED', 'TRIED AGAIN', 'PAUSED UNTIL']

function row(one: BreakerView): readonly string[] {
  return [
    one.queue,
    one.downstream,
    one.held === undefined ? one.phase : `held ${one.held}`,
    `${one.failed} of ${one.runs}`,
    one.held === undefined ? timeText(one.probeAt) : 'by hand',
    timeText(one.pausedUntil),
  ]
}
