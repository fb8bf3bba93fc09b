import { pause } from '../../model/clock.ts'
import { readBatches, type Unreadable } from './batches.ts'
import { ask, type Client, type Cluster, type Topic, topicOf } from './client.ts'
import { codes, MOVED, nameOf } from './fault.ts'
import { type FetchedPartition, fetchOf } from './fetch-answer.ts'
import type { Lane } from './lane.ts'
import { type LostPositions, lostPositions } from './lost-positions.ts'
import type { Place } from './options.ts'
import { deliveriesOf } from './records.ts'
import { type StuckLanes, stuckLanes } from './stuck-lanes.ts'

/** Keeps something to hand out in the buffer of each lane; one request at a time for each broker. */
export interface Fetcher {
  /** A lane has come, goes on, or has room again. */
  look(): void
  /** What keeps it from reading, a sentence each. */
  problems(): readonly string[]
}

export interface FetcherParts {
  readonly cluster: Cluster
  readonly client: Client
  readonly queue: string
  readonly place: Place
  readonly closing: AbortSignal
  /** Lanes of which something may be handed out, and whether they want more. */
  readonly lanes: () => readonly Lane[]
  readonly isHungry: (lane: Lane) => boolean
  readonly onRecords: () => void
  /** See `LostPositionsParts`. */
  readonly onAstray: (lane: Lane) => void
}

interface Fetching extends FetcherParts {
  readonly stuck: StuckLanes
  readonly positions: LostPositions
  readonly fetch: ReturnType<typeof fetchOf>
}

/** How long a broker waits for news; a lane that comes meanwhile waits as long at most. */
const WAIT_MS = 500
/** While there is more of a lane that has enough for now: it will want it soon, and must not wait for news of the others. */
const WAIT_BEHIND_MS = 20
const REQUEST_BYTES = 16 * 1024 * 1024
/** The broker sends at least one batch, however large it is. */
const LANE_BYTES = 1024 * 1024
const BACKOFF_MS = 100
const BACKOFF_MAX_MS = 2_000
const READ_COMMITTED = 1

export function startFetcher(parts: FetcherParts): Fetcher {
  const { cluster, closing } = parts
  const stuck = stuckLanes(cluster, parts.place, closing, () => look())
  const positions = lostPositions(parts)
  const fetching: Fetching = { ...parts, stuck, positions, fetch: fetchOf(cluster.module) }
  const hungry = (): readonly Lane[] =>
    parts.lanes().filter((lane) => parts.isHungry(lane) && !stuck.isResting(lane))
  const busy = new Set<number>()
  let topic: Topic | undefined
  let isLooking = false
  let isAsked = false
  let problem: string | undefined
  let backoffMs = BACKOFF_MS

  const suffer = async (error: unknown): Promise<void> => {
    if (closing.aborted) return
    topic = undefined
    const message = error instanceof Error ? error.message : String(error)
    if (problem === undefined)
      cluster.logger.warn(`kafka: cannot read topic "${parts.place.topic}": ${message}`)
    problem = `kafka: topic "${parts.place.topic}" cannot be read: ${message}`
    await pause(cluster.clock, backoffMs, closing)
    backoffMs = Math.min(BACKOFF_MAX_MS, backoffMs * 2)
  }
  const fetch = async (leader: number, from: Topic, lanes: readonly Lane[]): Promise<void> => {
    busy.add(leader)
    try {
      const isFresh = await fetchOnce(fetching, leader, from, lanes)
      if (!isFresh) await suffer(new Error('its partitions have other leaders now'))
      else {
        problem = undefined
        backoffMs = BACKOFF_MS
      }
    } catch (error) {
      await suffer(error)
    } finally {
      busy.delete(leader)
    }
    look()
  }
  const pump = async (): Promise<void> => {
    const known = topic
    const isKnown = hungry().every(({ partition }) => known?.partitions[partition] !== undefined)
    const from =
      known !== undefined && isKnown
        ? known
        : await topicOf(cluster, parts.client, parts.queue, parts.place.topic, {
            forceUpdate: true,
          })
    topic = from
    positions.compare(hungry(), from)
    const byLeader = Map.groupBy(
      hungry(),
      ({ partition }) => from.partitions[partition]?.leader ?? -1,
    )
    for (const [leader, lanes] of byLeader) {
      if (!busy.has(leader)) void fetch(leader, from, lanes)
    }
  }
  const look = (): void => {
    if (closing.aborted || hungry().length === 0) return
    // Whoever comes while we look (a broker that has just answered, say) may have come after we looked at its part.
    if (isLooking) {
      isAsked = true
      return
    }
    isLooking = true
    isAsked = false
    const looked = pump().catch(suffer)
    void looked.finally(() => {
      isLooking = false
      if (isAsked || topic === undefined) look()
    })
  }
  return {
    look,
    problems: () => {
      const unread = problem === undefined ? [] : [problem]
      return [...unread, ...stuck.problems(), ...positions.problems()]
    },
  }
}

/** False when the topic must be looked at anew. */
async function fetchOnce(
  fetching: Fetching,
  leader: number,
  topic: Topic,
  lanes: readonly Lane[],
): Promise<boolean> {
  const { cluster, client, closing, stuck, positions, onRecords, isHungry } = fetching
  const broker = topic.brokers.get(leader)
  if (broker === undefined) return false
  const asked = lanes.map((lane) => ({
    partition: lane.partition,
    currentLeaderEpoch: -1,
    fetchOffset: lane.fetchFrom,
    lastFetchedEpoch: -1,
    partitionMaxBytes: LANE_BYTES,
  }))
  const topics = [{ topicId: topic.id, partitions: asked }]
  const isBehind = fetching
    .lanes()
    .some((lane) => lane.fetchFrom < lane.readableTo && !isHungry(lane))
  const waitMs = isBehind ? WAIT_BEHIND_MS : WAIT_MS
  const limits = [waitMs, 1, REQUEST_BYTES, READ_COMMITTED, 0, -1] as const
  const call = { cluster, client, broker, what: 'a fetch', signal: closing }
  const answer = await ask(call, fetching.fetch, ...limits, topics, [], '')
  if (answer.errorCode !== 0) throw new cluster.module.ProtocolError(answer.errorCode)
  let isFresh = true
  for (const came of answer.partitions) {
    const lane = lanes.find(({ partition }) => partition === came.partitionIndex)
    if (lane === undefined || lane.isEnding) continue
    if (came.errorCode === 0) accept(fetching, lane, topic, came)
    else if (came.errorCode === codes.offsetOutOfRange) await positions.refused(lane, topic)
    else if (MOVED.includes(came.errorCode)) isFresh = false
    else stuck.add(lane, refusedBy(cluster, lane, came.errorCode))
  }
  onRecords()
  return isFresh
}

function refusedBy({ module }: Cluster, lane: Lane, code: number): Unreadable {
  return { offset: lane.fetchFrom, next: undefined, why: `its broker says ${nameOf(module, code)}` }
}

function accept(
  { cluster, stuck, positions }: Fetching,
  lane: Lane,
  topic: Topic,
  { records, abortedTransactions, lastStable }: FetchedPartition,
): void {
  const { batches, unreadable } = readBatches(cluster.module, records)
  const { deliveries, next } = deliveriesOf(lane, topic.id, {
    records: batches,
    abortedTransactions,
  })
  positions.readOf(lane, topic)
  lane.buffer.push(deliveries)
  lane.fetchFrom = next
  lane.readableTo = lastStable
  if (unreadable !== undefined) stuck.add(lane, unreadable)
  else if (batches.length > 0) stuck.clear(lane)
}
