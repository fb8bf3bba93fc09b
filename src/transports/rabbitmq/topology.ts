import { OptionsError } from '../../model/errors.ts'
import type { QueueSpec, Topology } from '../../transport/transport.ts'
import type { AmqpChannel } from './amqp-shapes.ts'
import { isFed, missingEnds } from './bindings.ts'
import type { Broker } from './broker.ts'
import { exists, throwAway } from './channel.ts'
import { tooSlow } from './consumer-timeout.ts'
import { ensureLadder, ladderDifferences } from './delay-queues.ts'
import { ladder, landingKey } from './ladder.ts'
import { lanePlaceOf } from './lane-place.ts'
import { lossesOf } from './losses.ts'
import { type Place, placeOf } from './names.ts'
import { nameProblem } from './options.ts'
import { queueArguments } from './queue-arguments.ts'
import { type QueueFacts, readQueue } from './queue-facts.ts'
import { UNSEEN } from './unseen.ts'

export function topology(broker: Broker, delays: boolean): Topology {
  let ladderIsThere: Promise<void> | undefined
  const tellOfPolicies = policyWarning(broker)
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
      const there: string[] = []
      for (const spec of names) {
        const looked = await ensureQueue(broker, spec, delays, signal)
        found.push(...looked.problems)
        if (looked.wasThere) there.push(placeOf(options, spec.name).queue)
      }
      if (found.length > 0) throw new OptionsError('rabbitmq', found)
      tellOfPolicies(there)
      if (options.topology === 'create') await bindToExchanges(broker, names, signal)
      if (!delays) return
      ladderIsThere ??= ensureLadder(broker, signal)
      await ladderIsThere.catch((error: unknown) => {
        ladderIsThere = undefined
        throw error
      })
      if (options.topology === 'create') return bindToLanding(broker, names, signal)
      const unbound = await unboundDelays(broker, names, signal)
      if (unbound.length > 0) throw new OptionsError('rabbitmq', unbound)
    },
    differences: (specs, signal) => lookedAt(broker, specs, delays, signal),
  }
}

/** What `ensure` would refuse; nothing is made. */
async function lookedAt(
  broker: Broker,
  specs: readonly QueueSpec[],
  delays: boolean,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const names = [...new Map(specs.map((spec) => [spec.name, spec])).values()]
  if (broker.options.topology === 'none') return names.flatMap((spec) => tooSlow(spec, broker))
  const found: string[] = []
  for (const spec of names) {
    found.push(...(await ensureQueue(broker, spec, delays, signal, 'look')).problems)
  }
  if (!delays) return found
  found.push(...(await ladderDifferences(broker, signal)))
  if (broker.options.topology === 'create' || found.length > 0) return found
  return unboundDelays(broker, names, signal)
}

/** Once, of the queues that others made: what a policy does to them may lose messages, and no start would tell. */
function policyWarning({ options, logger }: Broker): (there: readonly string[]) => void {
  let isTold = options.managementUrl !== undefined
  return (there) => {
    if (isTold || there.length === 0) return
    isTold = true
    const names = there.map((name) => `"${name}"`).join(', ')
    logger.warn(`rabbitmq: ${UNSEEN}. Queues that were there: ${names}`)
  }
}

interface Looked {
  readonly problems: readonly string[]
  readonly wasThere: boolean
}

/** Makes what is missing (but only looks where that was said), and answers what is wrong with what is there. */
async function ensureQueue(
  broker: Broker,
  spec: QueueSpec,
  delays: boolean,
  signal: AbortSignal,
  how: 'make' | 'look' = 'make',
): Promise<Looked> {
  const { options, server } = broker
  const { name, attempts } = spec
  const { queue, exchange } = placeOf(options, name)
  const wanted = queueArguments(options.queueType, server)
  const problem = nameProblem(queue, delays)
  if (problem !== undefined) return { problems: [problem], wasThere: false }
  const found: string[] = []
  const judged = (facts?: QueueFacts): readonly string[] => [
    ...found,
    ...tooSlow(spec, broker, facts),
    ...lossesOf(queue, facts, broker, attempts),
  ]
  if (
    exchange !== '' &&
    !(await exists(broker, (channel) => channel.checkExchange(exchange), signal))
  ) {
    found.push(
      `exchange "${exchange}" of queue "${name}" does not exist; make it, or leave exchange out`,
    )
  }
  if (await exists(broker, (channel) => channel.checkQueue(queue), signal)) {
    if (options.topology === 'check' && found.length === 0) {
      found.push(...(await unfed(broker, placeOf(options, name), signal)))
    }
    return { problems: judged(await readQueue(broker, queue, wanted, signal)), wasThere: true }
  }
  if (options.topology === 'check') {
    found.push(`queue "${queue}" does not exist; make it, or pass topology: 'create'`)
    return { problems: found, wasThere: false }
  }
  const { roster } = lanePlaceOf(options, name)
  if (await exists(broker, (channel) => channel.checkQueue(roster), signal)) {
    found.push(
      `queue "${queue}" has lanes, because it was in order ("${roster}" is there); give it its orderingKey again, or let it be emptied, delete its lanes and its roster, and start again`,
    )
    return { problems: judged(), wasThere: false }
  }
  if (how === 'look') return { problems: judged(), wasThere: false }
  const declaration = { durable: true, arguments: wanted }
  await throwAway(broker, (channel) => channel.assertQueue(queue, declaration), signal)
  // A policy reaches a new queue at once, and a management API that does not answer must not be found out later.
  const isSeen = options.managementUrl !== undefined
  const made = isSeen ? await readQueue(broker, queue, wanted, signal) : undefined
  return { problems: judged(made), wasThere: false }
}

async function unfed(
  broker: Broker,
  place: Place,
  signal: AbortSignal,
): Promise<readonly string[]> {
  if (await isFed(broker, place, signal)) return []
  const { queue, exchange, routingKey } = place
  return [
    `exchange "${exchange}" sends nothing with routing key "${routingKey}" to queue "${queue}"; bind it, or pass topology: 'create'`,
  ]
}

async function unboundDelays(
  broker: Broker,
  specs: readonly QueueSpec[],
  signal: AbortSignal,
): Promise<readonly string[]> {
  const places = specs.map(({ name }) => placeOf(broker.options, name))
  const ends = await missingEnds(broker, ladder(broker.options.delayPrefix), places, signal)
  return ends.map(
    (end) =>
      `${end}, by which delayed messages come to it, does not exist; make it, or pass topology: 'create' once`,
  )
}

/** To the exchanges that `queues` names; a send must reach its queue whatever else they feed. */
async function bindToExchanges(
  broker: Broker,
  specs: readonly QueueSpec[],
  signal: AbortSignal,
): Promise<void> {
  const places = specs.map(({ name }) => placeOf(broker.options, name))
  const named = places.filter(({ exchange }) => exchange !== '')
  if (named.length === 0) return
  const bind = async (channel: AmqpChannel): Promise<void> => {
    for (const { queue, exchange, routingKey } of named) {
      await channel.bindQueue(queue, exchange, routingKey)
    }
  }
  await throwAway(broker, bind, signal)
}

/** Where delayed messages fall out. */
async function bindToLanding(
  broker: Broker,
  specs: readonly QueueSpec[],
  signal: AbortSignal,
): Promise<void> {
  const { landing } = ladder(broker.options.delayPrefix)
  const bind = async (channel: AmqpChannel): Promise<void> => {
    for (const { name } of specs) {
      const { queue } = placeOf(broker.options, name)
      await channel.bindQueue(queue, landing, landingKey(queue))
    }
  }
  await throwAway(broker, bind, signal)
}
