import type { QueueSpec } from '../../transport/transport.ts'
import type { Broker } from './broker.ts'
import { numberOf, type QueueFacts } from './queue-facts.ts'

/** For the handler's own end, and to settle. */
const SETTLING_MS = 10_000

/**
 * The broker closes the channel of a delivery that has no ack in time, and with it all others lose theirs. A queue may have a
 * time of its own, which can be read (3.12 and later, not run there); the broker's own cannot.
 */
export function tooSlow(
  { name, handlerTimeoutMs = 0 }: QueueSpec,
  { options, server }: Pick<Broker, 'options' | 'server'>,
  facts?: QueueFacts,
): readonly string[] {
  const own =
    server.hasQueueTimeout && facts !== undefined ? numberOf(facts, 'consumer-timeout') : undefined
  const timeoutMs = own ?? options.consumerTimeoutMs
  if (handlerTimeoutMs === 0 || handlerTimeoutMs + SETTLING_MS <= timeoutMs) return []
  const [where, raise] =
    own === undefined
      ? ['consumer_timeout', "raise the broker's and pass consumerTimeoutMs"]
      : ["the queue's consumer-timeout", 'raise it']
  return [
    `queue "${name}": a handler may take ${handlerTimeoutMs} ms, and the broker takes a delivery back after ${timeoutMs} ms (${where}); shorten handlerTimeoutMs, or ${raise}`,
  ]
}

/** `delivery acknowledgement on channel 2 timed out. Timeout value used: 3000 ms. …` */
const TIMED_OUT = /delivery acknowledgement on channel .*timed out\. Timeout value used: (\d+) ms/

/** Why a channel ended, with what to do where we know it. */
export function explained(why: string): string {
  const [, timeoutMs] = TIMED_OUT.exec(why) ?? []
  if (timeoutMs === undefined) return why
  return `a delivery had no ack for ${timeoutMs} ms, which is the broker's consumer_timeout: raise it there, or shorten handlerTimeoutMs; pass consumerTimeoutMs: ${timeoutMs}, so that the next start tells`
}
