import type { ConsumerConfig, StreamConfig } from '@nats-io/jetstream'
import type { Source } from './lane.ts'
import type { QueueNames } from './names.ts'
import { millis } from './nanos.ts'
import type { QueueSettings, Store } from './store.ts'
import { takes } from './subjects.ts'

/** What would lose messages or keep ours from working, a sentence each. Other settings are the owner's business. */
export function queueDifferences(
  { queue, stream, subject, laterAll }: QueueNames,
  config: StreamConfig,
  { settings: { horizonMs, schedules, replicas } }: Pick<Store, 'settings'>,
  /** What the queue's own retries may take. */
  retriesMs = 0,
): readonly string[] {
  const neededMs = Math.max(horizonMs, retriesMs)
  const say = (setting: string, got: unknown, wanted: string): string =>
    `stream ${stream} of queue "${queue}": ${setting} is ${String(got)}; ${wanted}`
  const found: string[] = []
  if (config.retention !== 'workqueue') {
    found.push(
      say(
        'retention',
        config.retention,
        'expected workqueue, because an acked message must leave; use another stream',
      ),
    )
  }
  const limits = limitsOf(config)
  if (config.discard === 'old' && limits.length > 0) {
    found.push(
      say(
        'discard',
        `old with ${limits.join(' and ')}`,
        'this drops the oldest messages in silence; set discard to new or remove the limit',
      ),
    )
  }
  const maxAgeMs = millis(config.max_age)
  if (maxAgeMs > 0 && maxAgeMs < neededMs) {
    found.push(
      say(
        'max_age',
        `${maxAgeMs} ms`,
        `messages would end before their last retry; set it to 0, or to at least ${neededMs} ms (horizonMs, or all retries of the queue)`,
      ),
    )
  }
  found.push(...keptDifferences(config, replicas, say))
  if (config.no_ack === true)
    found.push(say('no_ack', true, 'a send could not be confirmed; remove it'))
  if (!takes(config.subjects, subject)) {
    found.push(say('subjects', config.subjects.join(', '), `expected one that takes ${subject}`))
  }
  if (schedules && (config.allow_msg_schedules !== true || !takes(config.subjects, laterAll))) {
    found.push(
      say(
        'allow_msg_schedules',
        config.allow_msg_schedules === true,
        `delayed messages need it, and the subject ${laterAll}; set both, or pass schedules: false`,
      ),
    )
  }
  return found
}

export function shelfDifferences(
  { queue, shelf, shelfAll }: QueueNames,
  config: StreamConfig,
  { settings: { replicas } }: Pick<Store, 'settings'>,
): readonly string[] {
  const say = (setting: string, got: unknown, wanted: string): string =>
    `stream ${shelf} for the dead letters of queue "${queue}": ${setting} is ${String(got)}; ${wanted}`
  const found: string[] = []
  if (config.retention !== 'limits')
    found.push(say('retention', config.retention, 'expected limits'))
  found.push(...keptDifferences(config, replicas, say))
  if (config.max_msgs_per_subject !== 1) {
    found.push(say('max_msgs_per_subject', config.max_msgs_per_subject, 'expected 1'))
  }
  if (millis(config.max_age) > 0) {
    found.push(
      say('max_age', `${millis(config.max_age)} ms`, 'dead letters wait for a person; set it to 0'),
    )
  }
  const limits = limitsOf({ ...config, max_msgs_per_subject: -1 })
  if (limits.length > 0 && config.discard === 'old') {
    found.push(
      say(
        'discard',
        `old with ${limits.join(' and ')}`,
        'this drops the oldest dead letters in silence; set discard to new or remove the limit',
      ),
    )
  }
  for (const denied of ['deny_delete', 'deny_purge'] as const) {
    if (config[denied] === true) {
      found.push(say(denied, true, 'a letter that was redriven or discarded must leave; remove it'))
    }
  }
  const missing = shelfAll.filter((one) => !takes(config.subjects, one))
  if (missing.length > 0) {
    found.push(say('subjects', config.subjects.join(', '), `expected ${missing.join(', ')} too`))
  }
  return found
}

export function consumerDifferences(
  { queue, stream, consumer, subject, lane }: Source,
  config: ConsumerConfig,
  { unackedAsked = 0 }: Pick<QueueSettings, 'unackedAsked'>,
): readonly string[] {
  const say = (setting: string, got: unknown, wanted: string): string =>
    `consumer ${consumer} of stream ${stream} of queue "${queue}": ${setting} is ${String(got)}; ${wanted}`
  const found: string[] = []
  const filters = config.filter_subjects ?? [config.filter_subject]
  if (config.ack_policy !== 'explicit') {
    found.push(say('ack_policy', config.ack_policy, 'expected explicit'))
  }
  if (config.deliver_subject !== undefined) {
    found.push(
      say('deliver_subject', config.deliver_subject, 'expected a pull consumer, which has none'),
    )
  }
  if ((config.max_deliver ?? -1) > 0) {
    found.push(
      say(
        'max_deliver',
        config.max_deliver,
        'the message would stay in the stream and never come again; set it to -1, attempts are counted by retry.attempts',
      ),
    )
  }
  if ((config.backoff?.length ?? 0) > 0) {
    found.push(
      say('backoff', 'set', 'it replaces the ack wait that leases are renewed by; remove it'),
    )
  }
  if (filters.length !== 1 || filters[0] !== subject) {
    found.push(say('filter_subject', filters.join(', ') || 'not set', `expected ${subject}`))
  }
  if (lane !== undefined && config.max_ack_pending !== 1) {
    found.push(
      say(
        'max_ack_pending',
        config.max_ack_pending ?? 'not set',
        'of a lane one message is handed out at a time; set it to 1',
      ),
    )
  }
  // Below 1 it has no limit.
  const unacked = config.max_ack_pending ?? 0
  if (lane === undefined && unacked > 0 && unacked < unackedAsked) {
    found.push(say('max_ack_pending', unacked, `raise it, or pass maxUnacked: ${unacked}`))
  }
  return found
}

/** On how many disks it lies; what is said of durability rests on that. */
function keptDifferences(
  { storage, num_replicas: copies }: StreamConfig,
  replicas: number,
  say: (setting: string, got: unknown, wanted: string) => string,
): readonly string[] {
  const found: string[] = []
  if (storage !== 'file') {
    found.push(say('storage', storage, 'a restart of the server loses all; use a stream on file'))
  }
  if (copies < replicas) {
    found.push(say('num_replicas', copies, `raise it, or pass replicas: ${copies}`))
  }
  return found
}

function limitsOf(config: Partial<StreamConfig>): readonly string[] {
  const limits = ['max_msgs', 'max_bytes', 'max_msgs_per_subject'] as const
  return limits.flatMap((name) => {
    const value = config[name] ?? -1
    return value > 0 ? [`${name} ${value}`] : []
  })
}
