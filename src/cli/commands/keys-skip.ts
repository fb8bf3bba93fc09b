import type { Command } from '../command.ts'
import { keysAct } from './keys-act.ts'

export const keysSkip: Command = {
  name: 'keys skip',
  summary: 'let halted keys go on without the message that died',
  operands: '<queue> <key…>',
  minOperands: 2,
  maxOperands: 1_001,
  options: {
    reason: { value: '<text>', help: 'why; kept in the audit log' },
  },
  notes: ['The dead letters stay where they are; a later redrive of them comes out of order.'],
  run: (call) => keysAct(call, 'skipped', (keys, queue, what) => keys.skip(queue, what)),
}
