import { OptionsError } from '../../model/errors.ts'
import { read } from '../../model/probe.ts'
import type { AmqpChannel } from './amqp-shapes.ts'
import { missingHops } from './bindings.ts'
import type { Broker } from './broker.ts'
import { exists, throwAway } from './channel.ts'
import { type Ladder, type Level, ladder } from './ladder.ts'
import { messageOf } from './link.ts'
import { numberOf, type QueueFacts, readQueue, textOf } from './queue-facts.ts'

type Arguments = Readonly<Record<string, string | number>>

/** No hop may drop what it cannot hand on. */
const SAFE: Arguments = { 'x-queue-type': 'quorum', 'x-overflow': 'reject-publish' }

function levelArguments({ ttlMs, next }: Level): Arguments {
  return {
    ...SAFE,
    'x-message-ttl': ttlMs,
    'x-dead-letter-exchange': next,
    'x-dead-letter-strategy': 'at-least-once',
  }
}

/**
 * Makes the queues that delays need, or looks whether they are there and as they have to be, each hop.
 * @throws MILLRACE_INVALID_OPTIONS with all that is missing or another thing
 */
export async function ensureLadder(broker: Broker, signal: AbortSignal): Promise<void> {
  const { delayPrefix, topology } = broker.options
  const wanted = ladder(delayPrefix)
  if (topology === 'create') {
    try {
      return await throwAway(broker, (channel) => makeLadder(channel, wanted), signal)
    } catch (error) {
      if (read(error, 'code') !== 406) throw error
      const last = `what is there under delayPrefix "${delayPrefix}" is not what delays need (${messageOf(error)}); pass another delayPrefix, delete it, or pass delays: false`
      const found = (await differences(broker, wanted, signal)).filter((one) => !isMissing(one))
      throw new OptionsError('rabbitmq', [...found, last])
    }
  }
  const found = await differences(broker, wanted, signal)
  if (found.length === 0) return
  const last = "make them once with topology: 'create', or pass delays: false"
  throw new OptionsError('rabbitmq', [...found, last])
}

/** What of it is not what delays need; what is missing would be made with `create`, and is no difference then. Makes nothing. */
export async function ladderDifferences(
  broker: Broker,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const { delayPrefix, topology } = broker.options
  const found = await differences(broker, ladder(delayPrefix), signal)
  return topology === 'create' ? found.filter((one) => !isMissing(one)) : found
}

/** From the last hop to the first, so that no message can fall where nothing is. */
async function makeLadder(
  channel: AmqpChannel,
  { levels, landing, stranded }: Ladder,
): Promise<void> {
  await channel.assertQueue(stranded, { durable: true, arguments: SAFE })
  await channel.assertExchange(stranded, 'fanout', { durable: true })
  await channel.bindQueue(stranded, stranded, '')
  await channel.assertExchange(landing, 'topic', { durable: true, alternateExchange: stranded })
  for (const level of levels.toReversed()) {
    await channel.assertExchange(level.exchange, 'topic', { durable: true })
    await channel.assertQueue(level.queue, { durable: true, arguments: levelArguments(level) })
    await channel.bindQueue(level.queue, level.exchange, level.waits)
    await channel.bindExchange(level.next, level.exchange, level.passes)
  }
}

const MISSING = ', which delays need, does not exist'

function isMissing(difference: string): boolean {
  return difference.endsWith(MISSING)
}

async function differences(
  broker: Broker,
  wanted: Ladder,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const { levels, landing, stranded } = wanted
  const found: string[] = []
  for (const level of levels) {
    found.push(...(await queueDifferences(broker, level.queue, levelArguments(level), signal)))
    found.push(...(await exchangeDifferences(broker, level.exchange, 'topic', {}, signal)))
  }
  found.push(...(await queueDifferences(broker, stranded, SAFE, signal)))
  found.push(...(await exchangeDifferences(broker, stranded, 'fanout', {}, signal)))
  const beyond = { alternateExchange: stranded }
  found.push(...(await exchangeDifferences(broker, landing, 'topic', beyond, signal)))
  if (found.length > 0) return found
  return (await missingHops(broker, wanted, signal)).map((hop) => `${hop}${MISSING}`)
}

async function queueDifferences(
  broker: Broker,
  queue: string,
  wanted: Arguments,
  signal: AbortSignal,
): Promise<readonly string[]> {
  if (!(await exists(broker, (channel) => channel.checkQueue(queue), signal))) {
    return [`queue "${queue}"${MISSING}`]
  }
  const facts = await readQueue(broker, queue, wanted, signal)
  return facts === undefined ? [] : hopDifferences(queue, facts, wanted)
}

/** What would let a delayed message through at another time, or lose it. */
export function hopDifferences(
  queue: string,
  facts: QueueFacts,
  wanted: Arguments,
): readonly string[] {
  const found: string[] = []
  const say = (what: string, value: unknown, instead: string): void =>
    void found.push(
      `queue "${queue}", which delays need, has ${what} ${value}, and needs ${instead}`,
    )
  if (!facts.durable) say('durable', false, 'true')
  if (facts.autoDelete) say('auto-delete', true, 'false')
  const type = textOf(facts, 'queue-type') ?? 'classic'
  // Of another type the broker does not compare all arguments, so the others would be guesses.
  if (type !== wanted['x-queue-type']) {
    say('queue-type', type, String(wanted['x-queue-type']))
    return found
  }
  for (const [argument, value] of Object.entries(wanted)) {
    const name = argument.slice('x-'.length)
    const is = typeof value === 'number' ? numberOf(facts, name) : textOf(facts, name)
    if (is !== value) say(name, is ?? 'not set', String(value))
  }
  for (const name of ['expires', 'max-length', 'max-length-bytes', 'message-ttl']) {
    const is = numberOf(facts, name)
    if (is !== undefined && wanted[`x-${name}`] === undefined) say(name, is, 'none')
  }
  return found
}

/** The broker tells what an exchange is only by refusing another one, at its first difference. */
async function exchangeDifferences(
  broker: Broker,
  exchange: string,
  type: 'topic' | 'fanout',
  more: object,
  signal: AbortSignal,
): Promise<readonly string[]> {
  if (!(await exists(broker, (channel) => channel.checkExchange(exchange), signal))) {
    return [`exchange "${exchange}"${MISSING}`]
  }
  const declaration = { durable: true, ...more }
  try {
    await throwAway(
      broker,
      (channel) => channel.assertExchange(exchange, type, declaration),
      signal,
    )
    return []
  } catch (error) {
    const code = read(error, 'code')
    // Who may not declare may not compare.
    if (code === 403) return []
    if (code !== 406) throw error
    return [`exchange "${exchange}" is not what delays need (${messageOf(error)})`]
  }
}
