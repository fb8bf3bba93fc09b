import { pause } from '../../model/clock.ts'
import { MillraceError } from '../../model/errors.ts'
import { readBatches, type Unreadable } from './batches.ts'
import { ask, type Cluster, isUnknownTopic, type Topic, withinLimit } from './client.ts'
import { codes, codesIn, MOVED } from './fault.ts'
import { type FetchedPartition, fetchOf } from './fetch-answer.ts'
import type { LetterRecord } from './letter-record.ts'
import { offsetsAt } from './offsets.ts'
import type { KafkaRecord } from './record-shapes.ts'

/** The one partition of a topic of dead letters, appended to and read by offset. */
export interface LetterLog {
  /** All in one record batch, so all or none; confirmed by all in-sync copies. */
  append(records: readonly LetterRecord[]): Promise<void>
  /** From an offset on to what was the end when this began; answers where the next read begins. Undefined: there is no such offset, or no topic. */
  read(from: bigint, onRecord: OnRecord): Promise<bigint | undefined>
  /** The records at these offsets, in growing order; what was compacted away is left out. */
  at(offsets: readonly bigint[], onRecord: OnRecord): Promise<void>
  /** What could not be read since the topic was last read from its beginning, a sentence each. */
  problems(): readonly string[]
}

export type OnRecord = (record: KafkaRecord, offset: bigint) => void

const PARTITION = 0
const ACKS_OF_ALL = -1
const FETCH_BYTES = 1024 * 1024
const READ_UNCOMMITTED = 0
const AGAIN_MS = 100

export function letterLog(cluster: Cluster, topic: string): LetterLog {
  const { options, sending } = cluster
  const led = ledBy(cluster, topic)
  const unreadable = new Map<bigint, string>()
  const step = stepper(cluster, topic, led, unreadable)
  return {
    problems: () => [...unreadable.values()],
    append: async (records) => {
      const messages = records.map((record) => ({ topic, partition: PARTITION, ...record }))
      const { compression } = options
      const call = sending.send({ messages, acks: ACKS_OF_ALL, idempotent: true, compression })
      await withinLimit(cluster, 'putting dead letters', call)
    },
    read: async (from, onRecord) => {
      if (from === 0n) unreadable.clear()
      try {
        const [first, end] = await led((now) => endsOf(cluster, topic, now))
        // The log was cut behind us, or the topic made anew.
        if (from > end) return undefined
        let next = from
        if (next < first) next = first
        while (next < end) {
          const reached = await step(next, onRecord)
          if (reached === next) break
          next = reached
        }
        return next
      } catch (error) {
        if (isMissing(error)) return undefined
        throw error
      }
    },
    at: async (offsets, onRecord) => {
      const wanted = new Set(offsets)
      let reached = -1n
      for (const offset of offsets) {
        if (offset < reached) continue
        reached = await step(offset, (record, at) => {
          if (wanted.delete(at)) onRecord(record, at)
        })
      }
    },
  }
}

type Led = <T>(run: (topic: Topic) => Promise<T>) => Promise<T>

/** Leaders move; whoever asked the wrong one looks again. */
function ledBy(cluster: Cluster, topic: string): Led {
  const { asking, clock, options, closing } = cluster
  let known: Topic | undefined
  const look = async (): Promise<Topic> => {
    const asked = asking.metadata({ topics: [topic], forceUpdate: true })
    const { brokers, topics } = await withinLimit(cluster, 'asking for a topic', asked)
    const found = topics.get(topic)
    if (found === undefined) throw missing(topic)
    known = { ...found, brokers }
    return known
  }
  return async (run) => {
    const giveUpAt = clock.now() + options.timeoutMs
    for (;;) {
      try {
        return await run(known ?? (await look()))
      } catch (error) {
        known = undefined
        const found = codesIn(error)
        const isMoving = MOVED.some((code) => code !== codes.unknownTopic && found.has(code))
        if (!isMoving || closing.aborted || clock.now() >= giveUpAt) throw error
        await pause(clock, AGAIN_MS, closing)
      }
    }
  }
}

async function endsOf(
  cluster: Cluster,
  topic: string,
  now: Topic,
): Promise<readonly [first: bigint, end: bigint]> {
  const at = async (which: 'earliest' | 'latest'): Promise<bigint> => {
    const found = await offsetsAt(cluster, cluster.asking, topic, now, [PARTITION], which)
    return found.get(PARTITION) ?? 0n
  }
  return Promise.all([at('earliest'), at('latest')])
}

/** Hands out what is at `from` and behind it; answers where the next fetch begins, `from` at the end. */
function stepper(
  cluster: Cluster,
  topic: string,
  led: Led,
  noted: Map<bigint, string>,
): (from: bigint, onRecord: OnRecord) => Promise<bigint> {
  const fetch = fetchOf(cluster.module)
  const fetchAt = async (from: bigint, now: Topic): Promise<FetchedPartition> => {
    const broker = now.brokers.get(now.partitions[PARTITION]?.leader ?? -1)
    if (broker === undefined) throw new cluster.module.ProtocolError(codes.leaderNotAvailable)
    const asked = { partition: PARTITION, currentLeaderEpoch: -1, lastFetchedEpoch: -1 }
    const part = { ...asked, fetchOffset: from, partitionMaxBytes: FETCH_BYTES }
    const call = { cluster, client: cluster.asking, broker, what: 'reading dead letters' }
    const limits = [0, 0, FETCH_BYTES, READ_UNCOMMITTED, 0, -1] as const
    const topics = [{ topicId: now.id, partitions: [part] }]
    const { errorCode, partitions } = await ask(call, fetch, ...limits, topics, [], '')
    const [came] = partitions
    const code = errorCode === 0 ? (came?.errorCode ?? codes.unknownTopicId) : errorCode
    if (code !== 0 || came === undefined) throw new cluster.module.ProtocolError(code)
    return came
  }
  return async (from, onRecord) => {
    const { records } = await led((now) => fetchAt(from, now))
    const { batches, unreadable } = readBatches(cluster.module, records)
    let next = from
    for (const batch of batches) {
      for (const record of batch.records) {
        const offset = batch.firstOffset + BigInt(record.offsetDelta)
        if (offset >= from) onRecord(record, offset)
      }
      next = batch.firstOffset + BigInt(batch.lastOffsetDelta) + 1n
    }
    if (unreadable === undefined) return next
    if (!noted.has(unreadable.offset)) {
      const problem = problemOf(topic, unreadable)
      noted.set(unreadable.offset, problem)
      const fields = { topic, offset: unreadable.offset }
      const error = new MillraceError('MILLRACE_UNREADABLE_BATCH', problem, { fields })
      cluster.logger.error(problem, { ...fields, error })
    }
    return unreadable.next ?? unreadable.offset + 1n
  }
}

function problemOf(topic: string, { offset, why }: Unreadable): string {
  return `kafka: the record batch at offset ${offset} of topic "${topic}" cannot be read, ${why}; the dead letters in it are missing in each list, and those that it removed are listed still. Where another replica is whole, make it the leader; else they stay away until the topic is made anew`
}

function missing(topic: string): MillraceError {
  return new MillraceError(
    'MILLRACE_UNKNOWN_QUEUE',
    `kafka: there is no topic "${topic}" for dead letters`,
  )
}

export function isMissing(error: unknown): boolean {
  return (
    isUnknownTopic(error) ||
    (error instanceof MillraceError && error.code === 'MILLRACE_UNKNOWN_QUEUE')
  )
}
