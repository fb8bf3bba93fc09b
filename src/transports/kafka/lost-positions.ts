import type { Client, Cluster, Topic } from './client.ts'
import type { Lane } from './lane.ts'
import { type OffsetsAt, offsetsAt } from './offsets.ts'
import type { Place } from './options.ts'

/** Positions that the log of a partition does not have, or that are another log's. Each is an error, and a problem for an hour. */
export interface LostPositions {
  /** The lane was read of this topic. A name can be another topic's later, its id cannot. */
  readOf(lane: Lane, topic: Topic): void
  /** Lets those begin anew that were read of another topic of this name: there their positions mean nothing. */
  compare(lanes: readonly Lane[], topic: Topic): void
  /** The broker has nothing at the position of the lane. */
  refused(lane: Lane, topic: Topic): Promise<void>
  /** A sentence for each partition. */
  problems(): readonly string[]
}

export interface LostPositionsParts {
  readonly cluster: Cluster
  readonly client: Client
  readonly place: Place
  /** The lane is lost, and its partition begins again at the first message that is kept. */
  readonly onAstray: (lane: Lane) => void
}

interface News {
  readonly problem: string
  readonly until: number
}

/** Long enough for whoever looks at `health()` now and then. */
const SAID_MS = 3_600_000

export function lostPositions(parts: LostPositionsParts): LostPositions {
  const { cluster, client, place, onAstray } = parts
  const { clock, logger } = cluster
  const origins = new WeakMap<Lane, string>()
  const news = new Map<number, News>()
  const say = ({ partition, fetchFrom: offset }: Lane, what: string): void => {
    const problem = `kafka: partition ${partition} of topic "${place.topic}" ${what}`
    logger.error(problem, { topic: place.topic, partition, offset })
    news.set(partition, { problem, until: clock.now() + SAID_MS })
  }
  return {
    readOf: (lane, { id }) => void origins.set(lane, id),
    compare: (lanes, { id }) => {
      for (const lane of lanes) {
        const origin = origins.get(lane)
        if (origin === undefined || origin === id) continue
        say(lane, 'was deleted and made anew; it is read from its first offset')
        onAstray(lane)
      }
    },
    refused: async (lane, topic) => {
      const at = async (which: OffsetsAt): Promise<bigint> => {
        const found = await offsetsAt(cluster, client, place.topic, topic, [lane.partition], which)
        return found.get(lane.partition) ?? 0n
      }
      const [first, end] = [await at('earliest'), await at('latest')]
      if (lane.isEnding) return
      if (lane.fetchFrom < first) {
        say(lane, deletedUnread(lane.fetchFrom, first))
        lane.fetchFrom = first
        return
      }
      // What was written up to here meanwhile was read by nobody: doubled is better than lost, and an inbox knows doubles.
      say(lane, beyondTheEnd(lane.fetchFrom, first, end))
      onAstray(lane)
    },
    problems: () => {
      for (const [at, { until }] of news) if (until <= clock.now()) news.delete(at)
      return [...news.values()].map(({ problem }) => problem)
    },
  }
}

function deletedUnread(from: bigint, first: bigint): string {
  const lost = first - from
  return `begins at offset ${first} now, and was read up to ${from}: ${lost} ${lost === 1n ? 'offset was' : 'offsets were'} deleted unread, by retention or by hand, and what was there is lost; give the topic a longer retention.ms, or the queue more workers`
}

function beyondTheEnd(from: bigint, first: bigint, end: bigint): string {
  return `ends at offset ${end}, and was read up to ${from}: it was made anew, or has lost its newest messages (unclean election); all that it keeps is read again, from offset ${first}`
}
