import { OptionsError } from '../../model/errors.ts'
import { read } from '../../model/probe.ts'
import type { QueueSpec, Topology } from '../../transport/transport.ts'
import type { AmqpChannel } from './amqp-shapes.ts'
import type { Broker } from './broker.ts'
import { exists, throwAway } from './channel.ts'
import { tooSlow } from './consumer-timeout.ts'
import { type LanePlace, laneName, lanePlaceOf } from './lane-place.ts'
import { heldMaxMs } from './lane-settle.ts'
import { lossesOf } from './losses.ts'
import { nameProblem } from './options.ts'
import { laneArguments, rosterArguments } from './queue-arguments.ts'
import { numberOf, type QueueFacts, readQueue } from './queue-facts.ts'

/** Queues that keep order: the lanes of each, and its roster. */
export function laneTopology(broker: Broker): Topology {
  const lookedAt = async (
    specs: readonly QueueSpec[],
    signal: AbortSignal,
    how: 'make' | 'look',
  ): Promise<readonly string[]> => {
    const found: string[] = []
    for (const spec of new Map(specs.map((one) => [one.name, one])).values()) {
      found.push(...unkeepable(broker, spec))
      if (found.length > 0 || broker.options.topology === 'none') continue
      found.push(...(await ensureLanes(broker, spec, signal, how)))
    }
    return found
  }
  return {
    async ensure(specs, signal) {
      const found = await lookedAt(specs, signal, 'make')
      if (found.length > 0) throw new OptionsError('rabbitmq', found)
    },
    differences: (specs, signal) => lookedAt(specs, signal, 'look'),
  }
}

/** What no broker need be asked for. */
function unkeepable(broker: Broker, spec: QueueSpec): readonly string[] {
  const { options } = broker
  const { name, handlerTimeoutMs = 0, retryWaitMs = 0 } = spec
  const { base, lanes, roster } = lanePlaceOf(options, name)
  const found = [...tooSlow(spec, broker)]
  for (const queue of [lanes.at(-1) ?? base, roster]) {
    const problem = nameProblem(queue, false)
    if (problem !== undefined) found.push(problem)
  }
  if ((options.queues[name]?.exchange ?? '') !== '') {
    found.push(
      `queues.${name}.exchange: a queue with orderingKey is sent to by the default exchange, which knows its lanes; leave exchange out`,
    )
  }
  const heldMs = handlerTimeoutMs + retryWaitMs
  if (found.length === 0 && heldMs > heldMaxMs(broker)) {
    found.push(
      `queue "${name}": with orderingKey a failed message waits for its retry in its place, up to ${retryWaitMs} ms behind a run of ${handlerTimeoutMs} ms, and the broker takes it back after ${options.consumerTimeoutMs} ms (consumer_timeout); keep both below half of that (retry.maxMs, handlerTimeoutMs), or raise the broker's and pass consumerTimeoutMs`,
    )
  }
  return found
}

/** Makes what is missing (but only looks where that was said), and answers what is wrong with what is there. */
async function ensureLanes(
  broker: Broker,
  spec: QueueSpec,
  signal: AbortSignal,
  how: 'make' | 'look',
): Promise<readonly string[]> {
  const place = lanePlaceOf(broker.options, spec.name)
  const isThere = (queue: string): Promise<boolean> =>
    exists(broker, (channel) => channel.checkQueue(queue), signal)
  // Where it is there, it was asked before it was made whether something stands in the way.
  const obstacle = (await isThere(place.roster)) ? undefined : await inTheWay(place, isThere)
  if (obstacle !== undefined) return [obstacle]
  const wanted = wantedQueues(broker, place)
  const makes = how === 'make' && broker.options.topology === 'create'
  if (makes && (await areMade(broker, wanted, signal))) {
    return policyLosses(broker, spec, wanted, signal)
  }
  const found: string[] = []
  for (const [queue, args] of wanted) {
    if (await isThere(queue)) {
      found.push(...(await differencesOf(broker, spec, queue, args, signal)))
    } else if (broker.options.topology === 'check') {
      found.push(`queue "${queue}" does not exist; make it, or pass topology: 'create'`)
    } else if (makes) {
      found.push(`queue "${queue}" does not exist, and this account may not make it`)
    }
    // Another number says that the lanes are others, too.
    if (queue === place.roster && found.length > 0) break
  }
  return found
}

type Arguments = Readonly<Record<string, unknown>>

/** The roster first: who has another number than it is refused before there is a lane. */
function wantedQueues(
  { server }: Broker,
  { lanes, roster }: LanePlace,
): ReadonlyMap<string, Arguments> {
  const all = new Map([[roster, rosterArguments(lanes.length)]])
  for (const lane of lanes) all.set(lane, laneArguments(server))
  return all
}

/** Messages that no lane would bring. */
async function inTheWay(
  { base, lanes }: LanePlace,
  isThere: (queue: string) => Promise<boolean>,
): Promise<string | undefined> {
  if (await isThere(base)) {
    return `queue "${base}" is there without lanes, and what is in it has no order; let it be emptied and delete it, or take another name`
  }
  const beyond = laneName(base, lanes.length)
  if (!(await isThere(beyond))) return undefined
  return `queue "${base}" has more than ${lanes.length} lanes ("${beyond}"); ${EMPTY}`
}

const EMPTY =
  'pass the number that it has, or let it be emptied, delete its lanes and its roster, and start again'

/** False where one differs, or where this account may not say. */
async function areMade(
  broker: Broker,
  wanted: ReadonlyMap<string, Arguments>,
  signal: AbortSignal,
): Promise<boolean> {
  const make = async (channel: AmqpChannel): Promise<void> => {
    for (const [queue, args] of wanted) {
      await channel.assertQueue(queue, { durable: true, arguments: args })
    }
  }
  try {
    await throwAway(broker, make, signal)
    return true
  } catch (error) {
    const code = read(error, 'code')
    if (code === 406 || code === 403) return false
    throw error
  }
}

/** Of queues that are as they were declared: what policies add. */
async function policyLosses(
  broker: Broker,
  { attempts }: QueueSpec,
  wanted: ReadonlyMap<string, Arguments>,
  signal: AbortSignal,
): Promise<readonly string[]> {
  if (broker.options.managementUrl === undefined) return []
  const found: string[] = []
  for (const [queue, args] of wanted) {
    const facts = await readQueue(broker, queue, args, signal)
    found.push(...lossesOfLane(broker, queue, facts, attempts))
  }
  return found
}

/** A lane that changes hands returns what it had, and each of these counts, however often it has run. */
function lossesOfLane(
  broker: Broker,
  queue: string,
  facts: QueueFacts | undefined,
  attempts: number | undefined,
): readonly string[] {
  const losses = lossesOf(queue, facts, broker, attempts)
  const limit = facts && numberOf(facts, 'delivery-limit')
  if (losses.length > 0 || limit === undefined || limit < 0) return losses
  return [
    `queue "${queue}" takes a message away at its return number ${limit} (delivery-limit), and a lane returns what it had each time that it changes hands; remove the limit`,
  ]
}

async function differencesOf(
  broker: Broker,
  { name, attempts }: QueueSpec,
  queue: string,
  args: Arguments,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const facts = await readQueue(broker, queue, args, signal)
  if (facts === undefined) return []
  const { base, lanes, roster } = lanePlaceOf(broker.options, name)
  if (queue !== roster) {
    const isSingle = facts.arguments.get('x-single-active-consumer') === true
    const losses = lossesOfLane(broker, queue, facts, attempts)
    return isSingle
      ? losses
      : [
          ...losses,
          `queue "${queue}" lets several consumers in at once, so it keeps no order; declare it with x-single-active-consumer`,
        ]
  }
  const count = numberOf(facts, 'max-length')
  if (count === lanes.length) return []
  if (count === undefined) {
    return [
      `queue "${roster}" does not say how many lanes "${base}" has (x-max-length); let that be emptied, delete both, and start again`,
    ]
  }
  return [`queue "${base}" has ${count} lanes, got lanes: ${lanes.length}; ${EMPTY}`]
}
