import { assign } from './assign.ts'
import { type Cluster, topicOf } from './client.ts'
import type { Coordinator } from './coordinator.ts'
import { readSubscription, writeAssignment } from './group-bytes.ts'
import { committedStarts } from './offsets.ts'
import type { Place } from './options.ts'

/** Who joined, and what it said. */
export interface Joined {
  readonly memberId: string
  readonly metadata: Buffer
}

/** What the leader of a group decided for all. */
export interface Shared {
  readonly shares: { readonly memberId: string; readonly assignment: Buffer }[]
  /** So many partitions the topic had. */
  readonly partitions: number
}

export interface ShareOutParts {
  readonly cluster: Cluster
  readonly coordinator: Coordinator
  readonly queue: string
  readonly place: Place
}

export async function shareOut(
  { cluster, coordinator, queue, place }: ShareOutParts,
  joined: readonly Joined[],
): Promise<Shared> {
  // Not of the group's own client: its calls have no limit, and the group waits for this one.
  const { partitionsCount: partitions } = await topicOf(
    cluster,
    cluster.asking,
    queue,
    place.topic,
    {
      forceUpdate: true,
    },
  )
  const members = joined.map(({ memberId, metadata }) => {
    const { owned, generation, addedFrom } = readSubscription(metadata)
    return { id: memberId, owned: owned.get(place.topic) ?? [], generation, addedFrom }
  })
  const committed = async (): Promise<ReadonlySet<number>> => {
    const all = Array.from({ length: partitions }, (_, partition) => partition)
    return new Set((await committedStarts(cluster, coordinator, place, all)).keys())
  }
  // With `earliest` it makes no difference which partitions were added.
  const isAsked = cluster.options.startFrom === 'latest'
  const said = members.flatMap((one) => one.addedFrom ?? [])
  const addedFrom = isAsked ? await firstAdded(partitions, said, committed) : undefined
  cluster.logger.debug(`kafka: group "${place.group}" has ${members.length} consumers`)
  const shares = [...assign(partitions, members)].map(([memberId, own]) => ({
    memberId,
    assignment: writeAssignment({ partitions: new Map([[place.topic, own]]), addedFrom }),
  }))
  return { shares, partitions }
}

/**
 * The first partition that was added after its group had begun. `startFrom: 'latest'` skips what was there before the group was;
 * what is in a partition that came later was all sent since, and skipping it would lose it.
 *
 * Members remember it and tell it to the next leader, for as long as one of them lives. When none does, the positions say it:
 * a group that begins writes down where, for each of its partitions, so a row of positions that ends before the last partition
 * ends where the topic ended.
 */
export async function firstAdded(
  partitions: number,
  said: readonly number[],
  committed: () => Promise<ReadonlySet<number>>,
): Promise<number> {
  if (said.length > 0) return Math.min(...said)
  const known = await committed()
  const isUnbroken = [...known].every((partition) => partition < known.size)
  return known.size > 0 && isUnbroken ? known.size : partitions
}
