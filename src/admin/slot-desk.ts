import type { Admin } from './admin.ts'
import type { AdminContext } from './context.ts'

/** As many keys as a person reads. */
const KEYS_MAX = 50

/** What of a queue's concurrency limit is taken. */
export function slotDesk({ find, limitsOf, storeFault }: AdminContext): Admin['slots'] {
  return async (ref) => {
    const { name: queue } = find(ref)
    const limits = limitsOf(queue)
    if (limits === undefined) return null
    const { max, maxPerKey } = limits
    try {
      return { queue, max, maxPerKey, ...(await limits.count(KEYS_MAX)) }
    } catch (cause) {
      throw storeFault(cause)
    }
  }
}
