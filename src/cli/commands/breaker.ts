import type { Admin } from '../../admin/admin.ts'
import type { Command } from '../command.ts'
import { DONE } from '../exit-code.ts'
import { UsageError } from '../usage-error.ts'
import { queueNamed, withApp } from '../with-app.ts'

export const breaker: Command = {
  name: 'breaker',
  summary: 'hold the breaker of a downstream open or closed, or let it decide again',
  operands: '<open|close|auto> <queue> <downstream>',
  minOperands: 3,
  maxOperands: 3,
  options: {},
  notes: [
    'open: nothing for it runs. close: everything runs, whatever fails. Both until auto.',
    'Reaches all workers within a second, through the store.',
  ],
  run: (call) => {
    const [verb = '', name = '', downstream = ''] = call.operands
    const act = actOf(verb)
    return withApp(call, 'check', async (open) => {
      const queue = queueNamed(open, name)
      if (queue.breaker?.scope === 'process') {
        throw new UsageError(
          `the breakers of queue "${name}" are of each process alone (scope "process"); this command reaches none`,
        )
      }
      await open.app.admin.breakers[act](queue, downstream)
      if (call.out.json) call.out.data({ queue: queue.name, downstream, breaker: act })
      else call.out.line(`${queue.name}: breaker of ${downstream} ${SAID[act]}`)
      return DONE
    })
  },
}

type Act = Exclude<keyof Admin['breakers'], 'list'>

const SAID: Readonly<Record<Act, string>> = {
  open: 'is held open',
  close: 'is held closed',
  auto: 'decides by itself',
}

function actOf(verb: string): Act {
  if (verb === 'open' || verb === 'close' || verb === 'auto') return verb
  throw new UsageError(`breaker: expected open, close or auto, got ${JSON.stringify(verb)}`)
}
