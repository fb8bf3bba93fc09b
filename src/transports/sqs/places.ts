import { unknownQueueError } from '../../transport/own-errors.ts'
import type { SqsApi } from './api.ts'
import { sqsFault } from './faults.ts'
import { MESSAGE_MAX_BYTES } from './traits.ts'

/** Where a queue is. */
export interface Place {
  readonly url: string
  /** The queue's own limit, smaller for many that were made before August 2025. */
  readonly messageBytes: number
}

/** The places of queues, looked up once. */
export interface Places {
  /** @throws MILLRACE_UNKNOWN_QUEUE when there is no such queue */
  of(queue: string): Promise<Place>
  /** What the queue is called at SQS, without its account. */
  physicalName(queue: string): string
  learn(queue: string, place: Place): void
}

export interface PlacesOptions {
  readonly api: SqsApi
  readonly kind: 'standard' | 'fifo'
  readonly prefix: string
  /** URL, ARN or name by the queue's name. */
  readonly queues: Readonly<Record<string, string>>
}

export function openPlaces({ api, kind, prefix, queues }: PlacesOptions): Places {
  const known = new Map<string, Promise<Place>>()
  const given = (queue: string): string | undefined =>
    Object.hasOwn(queues, queue) ? queues[queue] : undefined
  const physicalName = (queue: string): string => {
    const text = given(queue)
    if (text === undefined) return `${prefix}${queue}${kind === 'fifo' ? '.fifo' : ''}`
    return text.split(/[/:]/).at(-1) ?? text
  }
  const find = async (queue: string): Promise<Place> => {
    const text = given(queue)
    if (text !== undefined && isUrl(text)) return { url: text, messageBytes: MESSAGE_MAX_BYTES }
    const account = text === undefined ? undefined : accountOf(text)
    const QueueName = physicalName(queue)
    // What the SDK says of a name that SQS would not take is a fault of the request; there is no such queue.
    if (!isQueueName(QueueName)) throw unknownQueueError(queue)
    try {
      const input = { QueueName, ...(account && { QueueOwnerAWSAccountId: account }) }
      return { url: await api.queueUrl(input), messageBytes: MESSAGE_MAX_BYTES }
    } catch (error) {
      throw sqsFault(error).code === 'notFound' ? unknownQueueError(queue) : error
    }
  }
  return {
    of(queue) {
      const before = known.get(queue)
      if (before !== undefined) return before
      const found = find(queue)
      known.set(queue, found)
      found.catch(() => known.delete(queue))
      return found
    },
    physicalName,
    learn: (queue, place) => void known.set(queue, Promise.resolve(place)),
  }
}

export function isUrl(text: string): boolean {
  return /^https?:\/\//.test(text)
}

/** `arn:aws:sqs:eu-west-1:123456789012:orders` */
export function isArn(text: string): boolean {
  return /^arn:[a-z-]+:sqs:[a-z0-9-]+:\d{12}:[\w-]{1,80}(\.fifo)?$/.test(text)
}

export function isQueueName(text: string): boolean {
  return text.length <= 80 && /^[\w-]+(\.fifo)?$/.test(text)
}

function accountOf(text: string): string | undefined {
  return isArn(text) ? text.split(':')[4] : undefined
}
