import type { AuditView } from '../../admin/admin.ts'
import type { Call } from '../command.ts'
import { DONE, type ExitCode } from '../exit-code.ts'
import { table, timeText } from '../terminal-text.ts'
import { wholeNumber } from '../whole-number.ts'
import { type OpenApp, queueNamed, withApp } from '../with-app.ts'

type Queue = ReturnType<typeof queueNamed>

/** What `dlq audit` and `outbox audit` share: entries of one queue, newest first. */
export function auditEntries(
  call: Call,
  what: string,
  read: (
    open: OpenApp,
    queue: Queue,
    options: { readonly limit?: number },
  ) => Promise<readonly AuditView[]>,
): Promise<ExitCode> {
  const limit = wholeNumber('--limit', call.value('limit'), { min: 1, max: 500 })
  return withApp(call, 'check', async (open) => {
    const queue = queueNamed(open, call.operands[0] ?? '')
    const entries = await read(open, queue, limit === undefined ? {} : { limit })
    if (call.out.json) {
      call.out.data(entries)
      return DONE
    }
    if (entries.length === 0) call.out.note(`${what} queue "${queue.name}"`)
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
}
