import type { Command } from '../command.ts'
import { outboxAct } from './outbox-act.ts'

export const outboxRetry: Command = {
  name: 'outbox retry',
  summary: 'let the relay try stuck messages at once',
  operands: '<queue> <id…>',
  minOperands: 2,
  maxOperands: 10_001,
  options: {},
  run: (call) => outboxAct(call, 'due now:', (outbox, queue, ids) => outbox.retry(queue, { ids })),
}
