import type { Admin } from './admin.ts'
import { breakerDesk } from './breaker-desk.ts'
import { type AdminContext, browseAct, browseOf } from './context.ts'
import { deadLetterDesk } from './dead-letter-desk.ts'
import { checkId } from './dead-letter-options.ts'
import { diagnosed } from './diagnosed.ts'
import { keyDesk } from './key-desk.ts'
import { outboxDesk } from './outbox-desk.ts'
import { scaleDesk } from './scale-desk.ts'
import { slotDesk } from './slot-desk.ts'
import { deadMessageView, messageView } from './views.ts'

/** The administration of the queues of one app. */
export function createAdmin(given: AdminContext): Admin {
  const context = { ...given, transport: diagnosed(given.transport) }
  const { transport, find } = context
  return {
    backend: context.backend,
    stats: async (ref) => {
      const queue = find(ref)
      const gauge = await browseOf(transport).gauge(queue.name)
      return {
        queue: queue.name,
        owner: queue.owner,
        ...gauge,
        capacity: queue.capacity === 'unbounded' ? 'unbounded' : queue.capacity.maxDepth,
      }
    },
    scale: scaleDesk(context),
    slots: slotDesk(context),
    pause: async (ref) => browseAct(transport, 'setPaused')(find(ref).name, true),
    resume: async (ref) => {
      const { name } = find(ref)
      const { setPaused } = transport.browse ?? {}
      await setPaused?.(name, false)
      const resumed = await context.resumed(name)
      // Refused where a queue cannot be paused, and no consumer of it was stopped.
      if (!resumed && setPaused === undefined) browseAct(transport, 'setPaused')
    },
    purge: async (ref) => {
      const { name } = find(ref)
      const removed = await browseAct(transport, 'purge')(name)
      context.logger.warn(
        `queue "${name}": purged by hand, ${removed} messages that waited are gone`,
        { queue: name, removed },
      )
      return { removed }
    },
    messages: {
      get: async (ref, id) => {
        const queue = find(ref)
        checkId(queue.name, id)
        const stored = await transport.browse?.get?.(queue.name, id)
        if (stored !== undefined) return messageView(queue, stored)
        const dead = await transport.shelf?.get(queue.name, id)
        if (dead !== undefined) return deadMessageView(queue, dead)
        // "There is none" would be a guess where only the dead ones can be seen.
        browseAct(transport, 'get')
        return null
      },
      cancel: async (ref, id) => {
        const { name } = find(ref)
        checkId(name, id)
        return browseAct(transport, 'cancel')(name, id)
      },
    },
    breakers: breakerDesk(context),
    deadLetters: deadLetterDesk(context),
    keys: keyDesk(context),
    outbox: outboxDesk(context),
  }
}
