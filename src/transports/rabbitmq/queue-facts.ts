import { read } from '../../model/probe.ts'
import type { Broker } from './broker.ts'
import { throwAway } from './channel.ts'
import { messageOf } from './link.ts'
import { managementQueue } from './management.ts'

export type Value = string | number | boolean

/** How a queue that is there was declared, and what policies add. */
export interface QueueFacts {
  readonly durable: boolean
  readonly autoDelete: boolean
  readonly arguments: ReadonlyMap<string, Value>
  /** By policy names, without `x-`; undefined when policies cannot be seen. */
  readonly policy: ReadonlyMap<string, Value> | undefined
}

/** Of two numbers the smaller one counts (RabbitMQ's manual, policies). */
export function numberOf(
  { arguments: args, policy }: QueueFacts,
  name: string,
): number | undefined {
  const both = [args.get(`x-${name}`), policy?.get(name)].filter(
    (value) => typeof value === 'number',
  )
  return both.length === 0 ? undefined : Math.min(...both)
}

export function textOf({ arguments: args, policy }: QueueFacts, name: string): string | undefined {
  const value: Value | undefined = args.get(`x-${name}`) ?? policy?.get(name)
  return typeof value === 'string' ? value : undefined
}

/**
 * Undefined when the account may not look.
 * @param wanted the arguments that the queue should have
 */
export async function readQueue(
  broker: Broker,
  queue: string,
  wanted: Readonly<Record<string, unknown>>,
  signal: AbortSignal,
): Promise<QueueFacts | undefined> {
  const { managementUrl } = broker.options
  if (managementUrl !== undefined)
    return await managementQueue(broker, managementUrl, queue, signal)
  return await declaredQueue(broker, queue, wanted, signal)
}

/** `inequivalent arg 'x-max-length' for queue 'q' in vhost '/': received none but current is the value '7' of type 'byte'` */
const INEQUIVALENT =
  /inequivalent arg '([^']+)' for queue .*but current is (?:none|(?:the value )?'(.*?)')(?: of type '(\w+)')?"?$/
const TEXT_TYPES: ReadonlySet<string | undefined> = new Set(['longstr', 'shortstr'])
/** More than a queue has arguments. */
const QUESTIONS_MAX = 24

/**
 * AMQP tells what a queue is only by refusing a declaration that differs, one difference at a time; so we declare,
 * each time on a channel of its own, and take over what we are told, until the broker agrees. The queue stays as it is.
 */
async function declaredQueue(
  broker: Broker,
  queue: string,
  wanted: Readonly<Record<string, unknown>>,
  signal: AbortSignal,
): Promise<QueueFacts | undefined> {
  const flags = new Map([
    ['durable', true],
    ['auto_delete', false],
  ])
  const args = new Map<string, Value>()
  for (const [name, value] of Object.entries(wanted)) {
    if (isValue(value)) args.set(name, value)
  }
  for (let asked = 0; asked < QUESTIONS_MAX; asked++) {
    const declaration = {
      durable: flags.get('durable'),
      autoDelete: flags.get('auto_delete'),
      arguments: Object.fromEntries(args),
    }
    try {
      await throwAway(broker, (channel) => channel.assertQueue(queue, declaration), signal)
      break
    } catch (error) {
      if (read(error, 'code') === 403) {
        broker.logger.warn(
          `rabbitmq: queue "${queue}" is used as it is, because this account may not compare it (it lacks the right to configure it)`,
        )
        return undefined
      }
      const told = read(error, 'code') === 406 ? INEQUIVALENT.exec(messageOf(error)) : null
      if (told === null) throw error
      const [, name = '', value, type] = told
      if (flags.has(name)) flags.set(name, value === 'true')
      else if (value === undefined) args.delete(name)
      else args.set(name, toldValue(value, type))
    }
  }
  return {
    durable: flags.get('durable') === true,
    autoDelete: flags.get('auto_delete') === true,
    arguments: args,
    policy: undefined,
  }
}

function isValue(value: unknown): value is Value {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'
}

/** A text that the broker does not call one is still a text: a queue's own type, for one, comes without its type. */
function toldValue(value: string, type: string | undefined): Value {
  if (TEXT_TYPES.has(type)) return value
  if (type === 'bool') return value === 'true'
  const number = Number(value)
  return Number.isFinite(number) ? number : value
}
