import type { Command } from '../command.ts'
import { keysAct } from './keys-act.ts'

export const keysResume: Command = {
  name: 'keys resume',
  summary: 'redrive the dead letters that halted these keys, to the front; the keys go on',
  operands: '<queue> <key…>',
  minOperands: 2,
  maxOperands: 1_001,
  options: {
    reason: { value: '<text>', help: 'why; kept in the audit log' },
    force: { help: 'also what is older than the inbox remembers' },
  },
  notes: ['The reason and who asked are kept in the audit log.'],
  run: (call) =>
    keysAct(call, 'resumed', (keys, queue, what) =>
      keys.resume(queue, { ...what, force: call.is('force') }),
    ),
}
