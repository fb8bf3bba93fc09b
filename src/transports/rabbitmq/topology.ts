import { OptionsError } from '../../model/errors.ts'
import { read } from '../../model/probe.ts'
import type { QueueSpec, Topology } from '../../transport/transport.ts'
import type { AmqpChannel } from './amqp-shapes.ts'
import type { Broker } from './broker.ts'
import { throwAway } from './channel.ts'
import { tooSlow } from './consumer-timeout.ts'
import { ladder, landingKey } from './ladder.ts'
import { messageOf } from './link.ts'
import { lossesOf } from './losses.ts'
import { placeOf } from './names.ts'
import { nameProblem, type Resolved } from './options.ts'
import { queueArguments } from './queue-arguments.ts'
import { readQueue } from './queue-facts.ts'

export function topology(broker: Broker, delays: boolean): Topology {
  let ladderIsThere: Promise<void> | undefined
  return {
    async ensure(specs, signal) {
      const { options } = broker
      const names = [...new Map(specs.map((spec) => [spec.name, spec])).values()]
      if (names.length === 0) return
      if (options.topology === 'none') {
        const slow = names.flatMap((spec) => tooSlow(spec, broker))
        if (slow.length > 0) throw new OptionsError('rabbitmq', slow)
        return
      }
      const found: string[] = []
      for (const spec of names) found.push(...(await ensureQueue(broker, spec, delays, signal)))
      if (found.length > 0) throw new OptionsError('rabbitmq', found)
      if (!delays) return
      ladderIsThere ??= ensureLadder(broker, signal)
      await ladderIsThere.catch((error: unknown) => {
        ladderIsThere = undefined
        throw error
      })
      if (options.topology === 'create') await bindAll(broker, names, signal)
    },
  }
}

/** Makes what is missing, and answers what is wrong with what is there. */
async function ensureQueue(
  broker: Broker,
  spec: QueueSpec,
  delays: boolean,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const { options, server } = broker
  const { name, attempts } = spec
  const { queue, exchange } = placeOf(options, name)
  const problem = nameProblem(queue, delays)
  if (problem !== undefined) return [problem]
  const found: string[] = []
  if (
    exchange !== '' &&
    !(await exists(broker, (channel) => channel.checkExchange(exchange), signal))
  ) {
    found.push(
      `exchange "${exchange}" of queue "${name}" does not exist; make it, or leave exchange out`,
    )
  }
  if (await exists(broker, (channel) => channel.checkQueue(queue), signal)) {
    const facts = await readQueue(broker, queue, signal)
    return [...found, ...tooSlow(spec, broker, facts), ...lossesOf(queue, facts, broker, attempts)]
  }
  if (options.topology === 'check') {
    return [...found, `queue "${queue}" does not exist; make it, or pass topology: 'create'`]
  }
  const wanted = { durable: true, arguments: queueArguments(options.queueType, server) }
  await throwAway(broker, (channel) => channel.assertQueue(queue, wanted), signal)
  // A policy reaches a new queue at once, and a management API that does not answer must not be found out later.
  if (options.managementUrl === undefined) return [...found, ...tooSlow(spec, broker)]
  const made = await readQueue(broker, queue, signal)
  return [...found, ...tooSlow(spec, broker, made), ...lossesOf(queue, made, broker, attempts)]
}

async function bindAll(
  broker: Broker,
  specs: readonly QueueSpec[],
  signal: AbortSignal,
): Promise<void> {
  const { landing } = ladder(broker.options.delayPrefix)
  await throwAway(
    broker,
    async (channel) => {
      for (const { name } of specs) {
        const { queue, exchange, routingKey } = placeOf(broker.options, name)
        await channel.bindQueue(queue, landing, landingKey(queue))
        if (exchange !== '') await channel.bindQueue(queue, exchange, routingKey)
      }
    },
    signal,
  )
}

async function ensureLadder(broker: Broker, signal: AbortSignal): Promise<void> {
  const { options } = broker
  if (options.topology === 'create') {
    try {
      return await throwAway(broker, (channel) => makeLadder(channel, options), signal)
    } catch (error) {
      if (read(error, 'code') !== 406) throw error
      throw new OptionsError('rabbitmq', [otherLadder(options.delayPrefix, error)])
    }
  }
  const { levels, landing, stranded } = ladder(options.delayPrefix)
  const missing: string[] = []
  for (const queue of [...levels.map((level) => level.queue), stranded]) {
    const is = await exists(broker, (channel) => channel.checkQueue(queue), signal)
    if (!is) missing.push(`queue "${queue}", which delays need, does not exist`)
  }
  for (const exchange of [...levels.map((level) => level.exchange), landing]) {
    const is = await exists(broker, (channel) => channel.checkExchange(exchange), signal)
    if (!is) missing.push(`exchange "${exchange}", which delays need, does not exist`)
  }
  if (missing.length === 0) return
  const last = "make them once with topology: 'create', or pass delays: false"
  throw new OptionsError('rabbitmq', [...missing, last])
}

function otherLadder(prefix: string, error: unknown): string {
  return `what is there under delayPrefix "${prefix}" is not what delays need (${messageOf(error)}); pass another delayPrefix, delete it, or pass delays: false`
}

/** From the last hop to the first, so that no message can fall where nothing is. */
async function makeLadder(channel: AmqpChannel, { delayPrefix }: Resolved): Promise<void> {
  const { levels, landing, stranded } = ladder(delayPrefix)
  const safe = { 'x-queue-type': 'quorum', 'x-overflow': 'reject-publish' }
  await channel.assertQueue(stranded, { durable: true, arguments: safe })
  await channel.assertExchange(stranded, 'fanout', { durable: true })
  await channel.bindQueue(stranded, stranded, '')
  await channel.assertExchange(landing, 'topic', { durable: true, alternateExchange: stranded })
  for (const level of levels.toReversed()) {
    await channel.assertExchange(level.exchange, 'topic', { durable: true })
    const hop = {
      'x-message-ttl': level.ttlMs,
      'x-dead-letter-exchange': level.next,
      'x-dead-letter-strategy': 'at-least-once',
    }
    await channel.assertQueue(level.queue, { durable: true, arguments: { ...safe, ...hop } })
    await channel.bindQueue(level.queue, level.exchange, level.waits)
    await channel.bindExchange(level.next, level.exchange, level.passes)
  }
}

async function exists(
  broker: Broker,
  look: (channel: AmqpChannel) => Promise<unknown>,
  signal: AbortSignal,
): Promise<boolean> {
  try {
    await throwAway(broker, look, signal)
    return true
  } catch (error) {
    if (read(error, 'code') === 404) return false
    throw error
  }
}
