import type { KeySelection, KeysMoved } from '../../admin/admin.ts'
import { actorOf } from '../actor.ts'
import type { Call } from '../command.ts'
import { DONE, type ExitCode, FAILED } from '../exit-code.ts'
import { type OpenApp, queueNamed, withApp } from '../with-app.ts'

type Keys = OpenApp['app']['admin']['keys']
type Queue = ReturnType<typeof queueNamed>

/** What `keys resume` and `keys skip` share: the keys of one queue, who asks and why, and what became of them. */
export function keysAct(
  call: Call,
  done: string,
  act: (keys: Keys, queue: Queue, what: KeySelection) => Promise<KeysMoved>,
): Promise<ExitCode> {
  const reason = call.value('reason')
  return withApp(call, 'check', async (open) => {
    const [name = '', ...keys] = call.operands
    const why = reason === undefined ? {} : { reason }
    const what = { keys, actor: actorOf(call.io), ...why }
    const result = await act(open.app.admin.keys, queueNamed(open, name), what)
    if (call.out.json) call.out.data(result)
    else call.out.line(`${done} ${result.moved.length} of ${new Set(keys).size}`)
    if (result.notFound.length > 0) {
      call.out.note(`millrace: not halted: ${result.notFound.join(', ')}`)
    }
    return result.notFound.length > 0 ? FAILED : DONE
  })
}
