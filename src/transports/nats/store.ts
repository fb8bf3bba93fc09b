import type { StreamConfig } from '@nats-io/jetstream'
import type { Msg } from '@nats-io/transport-node'
import type { Clock } from '../../model/clock.ts'
import { closedError } from '../../model/closed-error.ts'
import type { Logger } from '../../model/logger.ts'
import { unknownQueueError } from '../../transport/own-errors.ts'
import type { Traits } from '../../transport/traits.ts'
import type { Client } from './client.ts'
import type { Connection } from './connection.ts'
import { namesOf, type QueueNames, type QueuePlace } from './names.ts'
import type { ServerAbilities } from './server.ts'
import type { ServerClock } from './server-clock.ts'
import type { StreamAge } from './stream-age.ts'

/** What all parts of one connection share. */
export interface Store {
  readonly client: Client
  readonly server: ServerAbilities
  readonly traits: Traits
  readonly clock: Clock
  readonly serverClock: ServerClock
  readonly streamAge: StreamAge
  readonly logger: Logger
  readonly prefix: string
  readonly physical: Readonly<Record<string, QueuePlace>>
  readonly timeoutMs: number
  readonly settings: QueueSettings
  /** Fires when the transport closes. */
  readonly closing: AbortSignal
  /** Sentences about queues that stand still, by queue; `health()` shows them. */
  readonly stuck: Map<string, string>
  /** See `Connection`. */
  readonly request: Connection['request']
  readonly tracked: Connection['tracked']
  readonly onReconnect: Connection['onReconnect']
}

/** What streams and consumers are made with. */
export interface QueueSettings {
  readonly topology: 'create' | 'check' | 'none'
  readonly replicas: number
  readonly ackWaitMs: number
  readonly maxUnacked: number
  /** As the user named it, and a consumer that is there must allow it; undefined: what it allows is fine. */
  readonly unackedAsked: number | undefined
  readonly duplicateWindowMs: number
  readonly horizonMs: number
  /** The server holds delayed messages back. */
  readonly schedules: boolean
  /** Of queues with an ordering key; undefined: there may be none. */
  readonly lanes: number | undefined
}

export function queueNames(store: Store, queue: string): QueueNames {
  return namesOf(queue, store.prefix, store.physical[queue])
}

/** How many lanes a queue with an ordering key has by our options; undefined: keys are not kept in order. */
export function lanesFor(
  { physical, settings }: Pick<Store, 'physical' | 'settings'>,
  queue: string,
): number | undefined {
  return settings.lanes && (physical[queue]?.lanes ?? settings.lanes)
}

/** An answer of JetStream as JSON: an acknowledged publish, or an error. */
export interface Answer {
  readonly seq?: number
  readonly duplicate?: boolean
  readonly error?: {
    readonly code: number
    readonly err_code?: number
    readonly description?: string
  }
}

/** What no responder means depends on whether the stream is there; this asks. @throws when it is not, or nobody says */
export async function needStream(store: Store, names: QueueNames): Promise<StreamConfig> {
  try {
    return (await store.client.manager.streams.info(names.stream)).config
  } catch (error) {
    if (error instanceof Error && error.name === 'StreamNotFoundError') {
      throw unknownQueueError(names.queue)
    }
    throw error
  }
}

export function needOpen(store: Store, queue: string): QueueNames {
  if (store.closing.aborted) throw closedError('the transport')
  return queueNames(store, queue)
}

export function readAnswer(msg: Msg): Answer {
  return msg.json<Answer>()
}
