import type { Breakers } from '../flow/breakers.ts'
import { countsOf } from '../flow/count-window.ts'
import { OptionsError } from '../model/errors.ts'
import { isName, NAME_RULE } from '../model/kept-text.ts'
import { show } from '../model/problems.ts'
import type { Admin, BreakerView, QueueRef } from './admin.ts'
import type { AdminContext } from './context.ts'

/** Breakers as people see and hold them. */
export function breakerDesk(context: AdminContext): Admin['breakers'] {
  const { clock, find } = context

  const diagnosed = async <T>(act: () => Promise<T>): Promise<T> => {
    try {
      return await act()
    } catch (cause) {
      throw context.storeFault(cause)
    }
  }

  const breakersOf = (ref: QueueRef): { readonly queue: string; readonly breakers: Breakers } => {
    const queue = find(ref).name
    const breakers = context.breakersOf(queue)
    if (breakers !== undefined) return { queue, breakers }
    const problem =
      'the queue names no downstream; give defineQueue({ downstream: (payload) => … })'
    throw new OptionsError(`breakers of queue "${queue}"`, [problem], { queue })
  }

  const hold = (held: 'open' | 'closed' | 'none') => async (ref: QueueRef, downstream: string) => {
    const { queue, breakers } = breakersOf(ref)
    checkDownstream(queue, downstream)
    await diagnosed(() => breakers.hold(downstream, held))
  }

  return {
    list: async (ref) => {
      const { name: queue } = find(ref)
      const breakers = context.breakersOf(queue)
      if (breakers === undefined) return []
      const fleet = await diagnosed(breakers.all)
      const now = clock.now()
      return [...fleet].map(([downstream, state]): BreakerView => {
        const { ok = 0, failed = 0 } = countsOf(state.window, now, breakers.windowMs)
        const isClosed = state.phase === 'closed'
        return {
          queue,
          downstream,
          phase: state.phase,
          held: state.held === 'none' ? undefined : state.held,
          failed: isClosed ? failed : state.failed,
          runs: isClosed ? ok + failed : state.runs,
          probeAt: state.phase === 'open' ? state.until : undefined,
          opens: state.opens,
          pausedUntil: state.gate?.until,
        }
      })
    },
    open: hold('open'),
    close: hold('closed'),
    auto: hold('none'),
  }
}

function checkDownstream(queue: string, downstream: unknown): void {
  if (isName(downstream)) return
  throw new OptionsError(
    `breakers of queue "${queue}"`,
    [`downstream: expected ${NAME_RULE}, got ${show(downstream)}`],
    { queue },
  )
}
