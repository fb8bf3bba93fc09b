import type { DeadLetterView } from '../admin/admin.ts'
import type { Logger } from '../model/logger.ts'

/** The user's calls of `onDeadLetter`. */
export interface Announcements {
  /** Calls at once; what the hook throws is logged, and changes nothing of what happened to the message. */
  tell(letter: DeadLetterView): void
  /** Resolves when none goes on, those included that begin meanwhile. */
  ended(): Promise<void>
}

export interface AnnouncementsOptions {
  /** The user's hook, run outside of whoever calls. Undefined: nobody wants to know. */
  readonly hook: ((letter: DeadLetterView) => unknown) | undefined
  readonly logger: Logger
}

export function announcements({ hook, logger }: AnnouncementsOptions): Announcements {
  const open = new Set<Promise<void>>()

  const call = async (letter: DeadLetterView): Promise<void> => {
    try {
      await hook?.(letter)
    } catch (cause) {
      const { id, queue } = letter
      logger.error(`onDeadLetter failed for message ${id}`, { queue, cause })
    }
  }

  return {
    tell: (letter) => {
      if (hook === undefined) return
      const told = call(letter).finally(() => open.delete(told))
      open.add(told)
    },
    ended: async () => {
      while (open.size > 0) await Promise.all(open)
    },
  }
}
