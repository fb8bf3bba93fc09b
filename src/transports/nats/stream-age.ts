import type { Clock } from '../../model/clock.ts'
import { messageOfError } from '../../model/describe-error.ts'
import type { Logger } from '../../model/logger.ts'
import type { Client } from './client.ts'
import { millis } from './nanos.ts'

/**
 * How long a stream that somebody else made keeps a message. A delayed one waits in the stream itself, and one that is older than
 * `max_age` before it is due is dropped by the server without a word (seen on 2.15.2).
 */
export interface StreamAge {
  /** In ms; Infinity where messages are kept until they are acked. Asks the server when it was not asked for a minute. */
  of(stream: string): Promise<number>
}

export interface StreamAgeParts {
  readonly client: Pick<Client, 'manager'>
  readonly clock: Clock
  readonly logger: Logger
}

const TRUST_MS = 60_000

export function openStreamAge({ client, clock, logger }: StreamAgeParts): StreamAge {
  const known = new Map<string, { readonly ageMs: number; readonly at: number }>()
  const warned = new Set<string>()

  const ask = async (stream: string): Promise<number> => {
    try {
      const { config } = await client.manager.streams.info(stream)
      return millis(config.max_age) || Number.POSITIVE_INFINITY
    } catch (error) {
      // The account may send and no more; that the stream is not there is told by the send itself.
      if (!warned.has(stream)) {
        logger.warn(
          `nats: how long stream ${stream} keeps messages cannot be read (${messageOfError(error)}); one that is delayed beyond its max_age would be lost`,
        )
      }
      warned.add(stream)
      return Number.POSITIVE_INFINITY
    }
  }
  return {
    async of(stream) {
      const before = known.get(stream)
      const now = clock.now()
      if (before !== undefined && now >= before.at && now - before.at <= TRUST_MS) {
        return before.ageMs
      }
      const ageMs = await ask(stream)
      known.set(stream, { ageMs, at: clock.now() })
      return ageMs
    },
  }
}
