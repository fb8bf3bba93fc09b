import { pause } from '../../model/clock.ts'
import { type LanePosition, type Settled, settled } from '../../model/delivery.ts'
import { lost } from '../../transport/outcomes.ts'
import { ask, type Cluster } from './client.ts'
import type { Coordinator } from './coordinator.ts'
import { codes, codesIn, kafkaFault } from './fault.ts'
import type { Lane } from './lane.ts'
import type { Identity, Member } from './member.ts'
import type { Place } from './options.ts'

/** Commits positions, one request at a time; what comes meanwhile goes with the next one. */
export interface Committer {
  /** What was asked before for the lane and not sent yet goes with it. */
  commit(lane: Lane, upTo: LanePosition): Promise<Settled>
}

export interface CommitterParts {
  readonly cluster: Cluster
  readonly coordinator: Coordinator
  readonly place: Place
  readonly member: Pick<Member, 'identity' | 'doubt'>
  readonly onCommitted: (lane: Lane) => void
}

interface Wanted {
  upTo: LanePosition
  readonly waiting: ((outcome: Settled) => void)[]
  readonly giveUpAt: number
}

/** Between two tries while the group shares out its partitions. */
const AGAIN_MS = 20

const notNow: Settled = {
  ok: false,
  fault: { code: 'unavailable', retryable: true, outcome: 'notApplied' },
}

export function committer(parts: CommitterParts): Committer {
  const { cluster, onCommitted } = parts
  const { clock, options } = cluster
  let wanted = new Map<Lane, Wanted>()
  let isRunning = false

  const answer = (lane: Lane, { upTo, waiting }: Wanted, outcome: Settled): void => {
    if (outcome.ok) {
      lane.committed = upTo.position
      onCommitted(lane)
    }
    for (const tell of waiting) tell(outcome)
  }
  /** What came for the lane meanwhile is newer, and is sent in its place. */
  const again = (lane: Lane, one: Wanted): void => {
    const newer = wanted.get(lane)
    if (newer === undefined) wanted.set(lane, one)
    else newer.waiting.unshift(...one.waiting)
  }
  const round = async (): Promise<void> => {
    const batch = wanted
    wanted = new Map()
    const held = new Map([...batch].filter(([{ claim }]) => !claim.lost.aborted))
    const outcome = held.size === 0 ? lost : await commitAll(parts, held)
    for (const [lane, one] of batch) {
      const isOver = clock.now() >= one.giveUpAt || cluster.closing.aborted
      // What was fenced is never committed again: the lane is lost by then.
      if (lane.claim.lost.aborted || !held.has(lane)) answer(lane, one, lost)
      else if (outcome !== 'again') answer(lane, one, outcome)
      else if (isOver) answer(lane, one, notNow)
      else again(lane, one)
    }
    if (outcome === 'again') await pause(clock, AGAIN_MS, cluster.closing)
  }
  const run = async (): Promise<void> => {
    while (wanted.size > 0) await round()
    isRunning = false
  }
  return {
    commit: (lane, upTo) =>
      new Promise((resolve) => {
        const found = wanted.get(lane)
        if (found === undefined) {
          const giveUpAt = clock.now() + options.timeoutMs
          wanted.set(lane, { upTo, waiting: [resolve], giveUpAt })
        } else {
          found.upTo = upTo
          found.waiting.push(resolve)
        }
        if (isRunning) return
        isRunning = true
        // What is settled in the same moment goes together.
        queueMicrotask(() => void run())
      }),
  }
}

/** `again`: the group or its coordinator is just changing, and nothing was committed. */
async function commitAll(
  parts: CommitterParts,
  batch: ReadonlyMap<Lane, Wanted>,
): Promise<Settled | 'again'> {
  const identity = parts.member.identity()
  if (identity === undefined) return 'again'
  try {
    await request(parts, identity, batch)
    return settled
  } catch (error) {
    return verdict(parts, identity, batch, error)
  }
}

async function request(
  { cluster, coordinator, place }: CommitterParts,
  { generation, memberId }: Identity,
  batch: ReadonlyMap<Lane, Wanted>,
): Promise<void> {
  const partitions = [...batch].map(([{ partition }, { upTo }]) => ({
    partitionIndex: partition,
    committedOffset: upTo.position,
    committedLeaderEpoch: -1,
    committedMetadata: upTo.note,
  }))
  const topics = [{ name: place.topic, partitions }]
  const broker = await coordinator.find()
  const { api } = cluster.module.offsetCommitV8
  const call = { cluster, client: cluster.asking, broker, what: 'a commit' }
  await ask(call, api, place.group, generation, memberId, null, topics)
}

const FENCED = [codes.illegalGeneration, codes.unknownMember, codes.fencedInstance]
const MOVING = [codes.coordinatorLoading, codes.coordinatorNotAvailable, codes.notCoordinator]

function verdict(
  { coordinator, member }: CommitterParts,
  identity: Identity,
  batch: ReadonlyMap<Lane, Wanted>,
  error: unknown,
): Settled | 'again' {
  const found = codesIn(error)
  const has = (some: readonly number[]): boolean => some.some((code) => found.has(code))
  if (has(FENCED)) {
    // Either we joined again meanwhile and kept these lanes, or they are lost from here on.
    member.doubt(error, identity)
    return 'again'
  }
  if (has([codes.rebalanceInProgress])) return 'again'
  if (has(MOVING)) {
    coordinator.forget()
    return 'again'
  }
  if (has([codes.offsetMetadataTooLarge])) {
    for (const one of batch.values()) one.upTo = { ...one.upTo, note: '' }
    return 'again'
  }
  coordinator.forget()
  return { ok: false, fault: kafkaFault(error) }
}
