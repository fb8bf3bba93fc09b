import type { Command } from '../command.ts'
import { DONE } from '../exit-code.ts'
import { UsageError } from '../usage-error.ts'
import { queueNamed, withApp } from '../with-app.ts'

export const purge: Command = {
  name: 'purge',
  summary: 'throw away for good all that is ready or scheduled',
  operands: '<queue>',
  minOperands: 1,
  maxOperands: 1,
  options: { yes: { help: 'sure (required)' } },
  notes: [
    'What is in flight is handled, dead letters stay, and keys that were given at the sends stay taken.',
    'Stop the senders first: what they send meanwhile may go, too. Memory, SQLite, Postgres and Redis.',
  ],
  run: (call) => {
    const [name = ''] = call.operands
    if (!call.is('yes')) {
      throw new UsageError(
        `purge needs --yes: what waits in ${JSON.stringify(name)} is gone for good then (millrace stats ${name} says how much that is)`,
      )
    }
    return withApp(call, 'check', async (open) => {
      const queue = queueNamed(open, name)
      const { removed } = await open.app.admin.purge(queue)
      if (call.out.json) call.out.data({ queue: queue.name, removed })
      else call.out.line(`purged ${queue.name}: ${removed} removed`)
      return DONE
    })
  },
}
