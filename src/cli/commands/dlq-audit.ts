import type { Command } from '../command.ts'
import { auditEntries } from './audit-entries.ts'

export const dlqAudit: Command = {
  name: 'dlq audit',
  summary: 'show who redrove or discarded which dead letter, when and why, newest first',
  operands: '<queue>',
  minOperands: 1,
  maxOperands: 1,
  options: { limit: { value: '<n>', help: '1 to 500; default 50' } },
  run: (call) =>
    auditEntries(call, 'nothing was redriven or discarded in', ({ app }, queue, options) =>
      app.admin.deadLetters.audit(queue, options),
    ),
}
