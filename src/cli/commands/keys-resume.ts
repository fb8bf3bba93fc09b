import { actorOf } from '../actor.ts'
import type { Command } from '../command.ts'
import { DONE, FAILED } from '../exit-code.ts'
import { queueNamed, withApp } from '../with-app.ts'

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
  run: (call) => {
    const reason = call.value('reason')
    return withApp(call, 'check', async (open) => {
      const [name = '', ...keys] = call.operands
      const queue = queueNamed(open, name)
      const result = await open.app.admin.keys.resume(queue, {
        keys,
        actor: actorOf(call.io),
        ...(reason === undefined ? {} : { reason }),
        force: call.is('force'),
      })
      if (call.out.json) call.out.data(result)
      else call.out.line(`resumed ${result.moved.length} of ${new Set(keys).size}`)
      if (result.notFound.length > 0) {
        call.out.note(`millrace: not halted: ${result.notFound.join(', ')}`)
      }
      return result.notFound.length > 0 ? FAILED : DONE
    })
  },
}
