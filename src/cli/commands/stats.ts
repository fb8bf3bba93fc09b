import type { QueueStats } from '../../admin/admin.ts'
import type { Command } from '../command.ts'
import { formatDuration } from '../duration.ts'
import { DONE } from '../exit-code.ts'
import { table } from '../terminal-text.ts'
import { queueNamed, withApp } from '../with-app.ts'

export const stats: Command = {
  name: 'stats',
  summary: 'show how much waits, runs and is dead, of one queue or all',
  operands: '[queue]',
  minOperands: 0,
  maxOperands: 1,
  options: {},
  notes: ['Age is that of the oldest message that is ready now: the number to alert on.'],
  run: (call) =>
    withApp(call, 'check', async (open) => {
      const [wanted] = call.operands
      const queues = wanted === undefined ? open.config.queues : [queueNamed(open, wanted)]
      const found: QueueStats[] = []
      for (const queue of queues) found.push(await open.app.admin.stats(queue))
      if (call.out.json) call.out.data(wanted === undefined ? found : found[0])
      else for (const line of table(HEAD, found.map(row))) call.out.line(line)
      return DONE
    }),
}

const HEAD = [
  'QUEUE',
  'DEPTH',
  'IN FLIGHT',
  'SCHEDULED',
  'DEAD',
  'AGE',
  'PAUSED',
  'CAPACITY',
  'OWNER',
]

function row(one: QueueStats): readonly string[] {
  return [
    one.queue,
    count(one.depth),
    count(one.inFlight),
    count(one.scheduled),
    count(one.dead),
    one.ageMs === undefined ? '?' : formatDuration(one.ageMs),
    one.paused ? 'yes' : 'no',
    String(one.capacity),
    one.owner,
  ]
}

/** The backend cannot say, which is not zero. */
function count(n: number | undefined): string {
  return n === undefined ? '?' : String(n)
}
