import { type Bell, openBell } from '../../transport/bell.ts'
import { type Cluster, closeClient, topicOf } from './client.ts'
import { type Committer, committer } from './committer.ts'
import { coordinatorOf } from './coordinator.ts'
import { type Fetcher, startFetcher } from './fetcher.ts'
import { laneMarks } from './lane-marks.ts'
import { type Lanes, openLanes } from './lanes.ts'
import { type Member, startMember } from './member.ts'
import { startsOf } from './offsets.ts'
import { placeOf } from './options.ts'

/** What a subscription is made of: a member of a group, the lanes that it has, what is fetched for them and committed. */
export interface Consumer {
  readonly lanes: Lanes
  readonly fetcher: Fetcher
  readonly member: Member
  readonly commit: Committer['commit']
  readonly bell: Bell<'lanes'>
  /** Names of lanes of which nothing is handed out. */
  readonly paused: Set<string>
  readonly closed: AbortSignal
  close(): Promise<void>
}

/** So many wait for each lane before more are fetched; a lane that is held fills no more than this. */
const BUFFERED = 500

export async function startConsumer(cluster: Cluster, queue: string): Promise<Consumer> {
  const place = placeOf(cluster.options, queue)
  await topicOf(cluster, cluster.asking, queue, place.topic)
  const clients = { grouping: cluster.open('grouping'), reading: cluster.open('reading') }
  const closing = new AbortController()
  const bell = openBell<'lanes'>(cluster.clock)
  const paused = new Set<string>()
  const coordinator = coordinatorOf(cluster, cluster.asking, place.group)
  const lanes = openLanes({
    cluster,
    closing: closing.signal,
    startsOf: (partitions, earlier) =>
      startsOf({ cluster, coordinator, queue, place }, partitions, earlier),
    marks: laneMarks(cluster, (lane, upTo) => commit(lane, upTo)),
    isOver: () => member.isOver(),
    onBegun: () => fetcher.look(),
    onGivenUp: () => member.rejoin(),
  })
  const fetcher = startFetcher({
    ...{ cluster, queue, place },
    client: clients.reading,
    closing: closing.signal,
    lanes: () => [...lanes.all()].filter((lane) => !lane.isEnding && !paused.has(lane.name)),
    isHungry: ({ buffer }) => buffer.size < BUFFERED,
    onRecords: () => bell.ring(),
    onAstray: lanes.restart,
  })
  const member = startMember({
    ...{ cluster, queue, place },
    client: clients.grouping,
    coordinator: coordinatorOf(cluster, clients.grouping, place.group),
    owned: lanes.owned,
    onAssigned: lanes.assigned,
    onLost: (why) => {
      cluster.logger.warn(`kafka: group "${place.group}": all partitions are lost, ${why}`)
      lanes.loseAll()
    },
  })
  const { onCommitted } = lanes
  const { commit } = committer({ cluster, place, member, coordinator, onCommitted })
  const close = async (): Promise<void> => {
    closing.abort()
    await lanes.endAll()
    lanes.loseAll()
    await member.close()
    await Promise.all(Object.values(clients).map((client) => closeClient(cluster, client)))
  }
  let closed: Promise<void> | undefined
  return {
    ...{ lanes, fetcher, member, commit, bell, paused },
    closed: closing.signal,
    close: () => {
      closed ??= close()
      return closed
    },
  }
}
