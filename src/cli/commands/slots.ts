import type { SlotsView } from '../../admin/admin.ts'
import type { Command } from '../command.ts'
import { DONE } from '../exit-code.ts'
import { table } from '../terminal-text.ts'
import { queueNamed, withApp } from '../with-app.ts'

export const slots: Command = {
  name: 'slots',
  summary: 'show how much of a concurrency limit is taken, of the queue and of its busiest keys',
  operands: '[queue]',
  minOperands: 0,
  maxOperands: 1,
  options: {},
  notes: [
    'Of queues with a concurrencyLimit that is shared through the store; with scope "process" only the process itself knows.',
  ],
  run: (call) =>
    withApp(call, 'check', async (open) => {
      const [wanted] = call.operands
      const queues = wanted === undefined ? open.config.queues : [queueNamed(open, wanted)]
      const found: SlotsView[] = []
      for (const queue of queues) {
        const view = await open.app.admin.slots(queue)
        if (view !== null) found.push(view)
      }
      if (call.out.json) call.out.data(found)
      else if (found.length === 0) call.out.note('no queue has a concurrencyLimit')
      else for (const line of table(HEAD, found.flatMap(rows))) call.out.line(line)
      return DONE
    }),
}

const HEAD = ['QUEUE', 'KEY', 'TAKEN', 'OF']

function rows({ queue, held, max, maxPerKey, keys }: SlotsView): readonly (readonly string[])[] {
  const ofKeys = maxPerKey === undefined ? [] : keys
  return [
    [queue, '-', String(held), limit(max)],
    ...ofKeys.map((one) => [queue, one.key, String(one.held), limit(maxPerKey)]),
  ]
}

function limit(max: number | undefined): string {
  return max === undefined ? 'any' : String(max)
}
