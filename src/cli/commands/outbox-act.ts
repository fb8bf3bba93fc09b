import type { StuckResult } from '../../admin/admin.ts'
import type { Call } from '../command.ts'
import { DONE, type ExitCode, FAILED } from '../exit-code.ts'
import { type OpenApp, queueNamed, withApp } from '../with-app.ts'

type Outbox = OpenApp['app']['admin']['outbox']
type Queue = ReturnType<typeof queueNamed>

/** What `outbox retry` and `outbox discard` share: the messages of one queue, and what became of them. */
export function outboxAct(
  call: Call,
  done: string,
  act: (outbox: Outbox, queue: Queue, ids: readonly string[]) => Promise<StuckResult>,
): Promise<ExitCode> {
  return withApp(call, 'check', async (open) => {
    const [name = '', ...ids] = call.operands
    const result = await act(open.app.admin.outbox, queueNamed(open, name), ids)
    if (call.out.json) call.out.data(result)
    else call.out.line(`${done} ${result.done.length} of ${new Set(ids).size}`)
    if (result.notFound.length > 0) {
      call.out.note(`millrace: not stuck in the outbox: ${result.notFound.join(', ')}`)
    }
    return result.notFound.length > 0 ? FAILED : DONE
  })
}
