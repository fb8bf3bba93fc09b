import type { Command } from '../command.ts'
import { auditEntries } from './audit-entries.ts'

export const outboxAudit: Command = {
  name: 'outbox audit',
  summary: 'show who discarded what from the outbox, when and why, newest first',
  operands: '<queue>',
  minOperands: 1,
  maxOperands: 1,
  options: { limit: { value: '<n>', help: '1 to 500; default 50' } },
  run: (call) =>
    auditEntries(call, 'nothing was discarded from the outbox of', ({ app }, queue, options) =>
      app.admin.outbox.audit(queue, options),
    ),
}
