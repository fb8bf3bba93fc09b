import type { Broker } from './broker.ts'
import { numberOf, type QueueFacts, textOf } from './queue-facts.ts'

/** What a message may come back without having failed: releases of deploys, crashes of neighbours, lost connections. */
const UNCOUNTED_RELEASES = 20
const ATTEMPTS_DEFAULT = 8
/** Of 4.x, where a queue does not say. */
const LIMIT_OF_4 = 20

type Asked = Pick<Broker, 'options' | 'server'>

/** Everything about a queue that is there which would lose messages in silence, or which is not what was asked for. */
export function lossesOf(
  queue: string,
  facts: QueueFacts | undefined,
  { options, server }: Asked,
  attempts: number = ATTEMPTS_DEFAULT,
): readonly string[] {
  if (facts === undefined) return []
  const found: string[] = []
  const add = (what: string, instead: string): void =>
    void found.push(`queue "${queue}" ${what}; ${instead}`)
  const type = textOf(facts, 'queue-type') ?? 'classic'
  if (type !== options.queueType) {
    add(
      `is of type ${type}, not ${options.queueType}`,
      `pass queueType: '${type}', or take another name`,
    )
  }
  if (!facts.durable) add('is not durable: a restart loses it', 'declare it durable')
  if (facts.autoDelete) add('is deleted with its last consumer (auto-delete)', 'declare it without')
  const expires = numberOf(facts, 'expires')
  if (expires !== undefined)
    add(`is deleted when unused for ${expires} ms (expires)`, 'declare it without')
  const ttl = numberOf(facts, 'message-ttl')
  if (ttl !== undefined)
    add(`drops messages after ${ttl} ms (message-ttl)`, 'remove it, or the policy with it')
  const length = numberOf(facts, 'max-length') ?? numberOf(facts, 'max-length-bytes')
  const overflow = textOf(facts, 'overflow') ?? 'drop-head'
  if (length !== undefined && overflow === 'drop-head') {
    add(
      `drops its oldest messages beyond its length ${length} (overflow drop-head)`,
      'set overflow: reject-publish',
    )
  }
  const limit =
    numberOf(facts, 'delivery-limit') ?? (server.limitsDeliveries ? LIMIT_OF_4 : undefined)
  if (type === 'quorum' && limit !== undefined && limit >= 0) {
    const needed = attempts + UNCOUNTED_RELEASES
    if (textOf(facts, 'dead-letter-exchange') === undefined) {
      add(
        `drops a message at its return number ${limit} (delivery-limit, no dead-letter-exchange)`,
        'remove the limit',
      )
    } else if (limit < needed) {
      const sum = `${attempts} attempts and ${UNCOUNTED_RELEASES} uncounted releases`
      add(
        `dead-letters at return number ${limit} (delivery-limit)`,
        `raise it to ${needed}, for ${sum}`,
      )
    } else if (textOf(facts, 'dead-letter-strategy') !== 'at-least-once') {
      add(
        'may lose what it dead-letters',
        'set dead-letter-strategy: at-least-once and overflow: reject-publish',
      )
    }
  }
  return found
}
