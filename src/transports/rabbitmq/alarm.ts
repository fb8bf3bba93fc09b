import type { Logger } from '../../model/logger.ts'

/** Why the broker takes no messages on one connection: its memory or disk alarm. */
export interface Alarm {
  why(): string | undefined
  /** Undefined: it takes messages again. */
  tell(why: string | undefined): void
  hear(told: (why: string) => void): void
  /** The connection is gone, and what was told of it. */
  forget(): void
}

export function alarm(logger: Logger): Alarm {
  const hearers: ((why: string) => void)[] = []
  let current: string | undefined
  return {
    why: () => current,
    tell(why) {
      current = why
      logger.warn(
        `rabbitmq: the broker takes ${why === undefined ? 'messages again' : `no messages (${why})`}`,
      )
      if (why !== undefined) for (const hear of hearers) hear(why)
    },
    hear: (told) => void hearers.push(told),
    forget() {
      current = undefined
    },
  }
}
