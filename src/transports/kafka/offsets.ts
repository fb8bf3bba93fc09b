import { ask, type Client, type Cluster, type Topic, topicOf } from './client.ts'
import { askCoordinator, type Coordinator } from './coordinator.ts'
import type { Start } from './lane.ts'
import type { Place } from './options.ts'

const EARLIEST = -2n
const LATEST = -1n
const NO_EPOCH = -1

export type OffsetsAt = 'earliest' | 'latest'

/** The first or the next offset of some partitions, asked of their leaders. */
export async function offsetsAt(
  cluster: Cluster,
  client: Client,
  topicName: string,
  topic: Topic,
  partitions: readonly number[],
  at: OffsetsAt,
): Promise<ReadonlyMap<number, bigint>> {
  const timestamp = at === 'earliest' ? EARLIEST : LATEST
  const found = new Map<number, bigint>()
  const byLeader = Map.groupBy(partitions, (partition) => topic.partitions[partition]?.leader ?? -1)
  for (const [leader, some] of byLeader) {
    const broker = topic.brokers.get(leader)
    if (broker === undefined)
      throw new Error(`partition ${some[0]} of topic ${topicName} has no leader now`)
    const { module } = cluster
    const call = { cluster, client, broker, what: 'asking for offsets' }
    const asked = some.map((partitionIndex) => ({
      ...{ partitionIndex, currentLeaderEpoch: NO_EPOCH, timestamp },
    }))
    const { topics } = await ask(call, module.listOffsetsV7.api, -1, 1, [
      { name: topicName, partitions: asked },
    ])
    for (const one of topics.flatMap((each) => each.partitions)) {
      found.set(one.partitionIndex, one.offset)
    }
  }
  return found
}

/** As it was committed. */
export type Committed = Pick<Start, 'position' | 'note'>

/** What the group has committed; partitions without a commit are absent. */
export async function committedStarts(
  cluster: Cluster,
  coordinator: Coordinator,
  { topic, group }: Place,
  partitions: readonly number[],
): Promise<ReadonlyMap<number, Committed>> {
  if (partitions.length === 0) return new Map()
  const topics = [{ name: topic, partitionIndexes: [...partitions] }]
  const request = [{ groupId: group, memberEpoch: -1, memberId: null, topics }]
  const { groups } = await askCoordinator(cluster, coordinator, (broker) => {
    const call = { cluster, client: cluster.asking, broker, what: 'asking for committed positions' }
    return ask(call, cluster.module.offsetFetchV8.api, request, true)
  })
  const found = groups.flatMap((each) => each.topics).flatMap((each) => each.partitions)
  return new Map(
    found
      .filter(({ committedOffset }) => committedOffset >= 0n)
      .map(({ partitionIndex, committedOffset, metadata }) => {
        return [partitionIndex, { position: committedOffset, note: metadata ?? '' }]
      }),
  )
}

export interface StartsParts {
  readonly cluster: Cluster
  readonly coordinator: Coordinator
  readonly queue: string
  readonly place: Place
}

/** Partitions that begin at the first message that is kept, whatever `startFrom` says, because their group has begun before. */
export interface Earlier {
  /** Their committed position is none of their log. */
  readonly anew: ReadonlySet<number>
  /** Those from here on that have no position; see `firstAdded`. */
  readonly addedFrom: number | undefined
}

/** Where a new holder of these partitions begins. */
export async function startsOf(
  { cluster, coordinator, queue, place }: StartsParts,
  partitions: readonly number[],
  { anew, addedFrom = Number.POSITIVE_INFINITY }: Earlier,
): Promise<ReadonlyMap<number, Start>> {
  const { asking, options } = cluster
  const again = partitions.filter((partition) => anew.has(partition))
  const known = partitions.filter((partition) => !anew.has(partition))
  const committed = await committedStarts(cluster, coordinator, place, known)
  // What is known from before may lack a partition that was added, or name a leader that is none any more.
  const topic = await topicOf(cluster, asking, queue, place.topic, { forceUpdate: true })
  const ask = (some: readonly number[], at: OffsetsAt): Promise<ReadonlyMap<number, bigint>> =>
    offsetsAt(cluster, asking, place.topic, topic, some, at)
  const fresh = known.filter((partition) => !committed.has(partition))
  const held = [...committed].flatMap(([at, { note }]) => (note === ENDED ? [] : [at]))
  const [added, begins, firsts, ends] = await Promise.all([
    ask(
      fresh.filter((partition) => partition >= addedFrom),
      'earliest',
    ),
    ask(
      fresh.filter((partition) => partition < addedFrom),
      options.startFrom,
    ),
    ask(again, 'earliest'),
    ask([...held, ...again], 'latest'),
  ])
  return new Map([
    ...[...committed].map(([at, one]) => [at, startOf(one, ends.get(at))] as const),
    ...[...added, ...begins].map(([at, position]) => [at, endedAt(position)] as const),
    ...[...firsts].map(([at, position]) => [at, againAt(position, ends.get(at))] as const),
  ])
}

/** Beside a position: whoever held the partition settled all that it had in hand. */
export const ENDED = 'ended'

function startOf({ position, note }: Committed, end: bigint | undefined): Start {
  if (note === ENDED) return endedAt(position)
  const untouchedFrom = end === undefined || end < position ? position : end
  return { position, note, untouchedFrom, isHeld: true }
}

function endedAt(position: bigint): Start {
  return { position, note: '', untouchedFrom: position, isHeld: false }
}

/** Anybody may have had any of it in hand. */
function againAt(position: bigint, end: bigint | undefined): Start {
  return { ...startOf({ position, note: '' }, end), isHeld: false }
}
