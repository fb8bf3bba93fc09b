import type { HaltedKeyView } from '../../admin/admin.ts'
import type { Command } from '../command.ts'
import { fields } from '../message-text.ts'
import { showOne } from '../show-one.ts'
import { timeText } from '../terminal-text.ts'
import { queueNamed, withApp } from '../with-app.ts'

export const keysShow: Command = {
  name: 'keys show',
  summary: 'show one ordering key that stands still, and what waits behind it',
  operands: '<queue> <key>',
  minOperands: 2,
  maxOperands: 2,
  options: {},
  notes: ['Why its message died: millrace dlq show <queue> <dead letter>.'],
  run: (call) =>
    withApp(call, 'check', async (open) => {
      const [name = '', key = ''] = call.operands
      const queue = queueNamed(open, name)
      const found = await open.app.admin.keys.show(queue, key)
      const missing = `key ${JSON.stringify(key)} of queue "${queue.name}" is not halted`
      return showOne(call, found, missing, haltedKeyText)
    }),
}

function haltedKeyText(view: HaltedKeyView): readonly string[] {
  return fields([
    ['key', view.key],
    ['queue', view.queue],
    ['halted at', timeText(view.haltedAt)],
    ['waiting', String(view.waiting)],
    ['dead letter', view.messageId],
  ])
}
