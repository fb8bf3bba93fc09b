import { pause } from '../../model/clock.ts'
import type { SignsOfLife } from '../../transport/signs-of-life.ts'
import { ask, type Call, type Client, type Cluster, withinLimit } from './client.ts'
import type { Coordinator } from './coordinator.ts'
import { codes, codesIn, saidBy } from './fault.ts'
import { readAssignment, writeSubscription } from './group-bytes.ts'
import { growthWatch } from './growth-watch.ts'
import {
  beat,
  beatWhileJoining,
  REBALANCE_SLACK_MS,
  rebalanceMsOf,
  signsOfGroup,
} from './heartbeat.ts'
import type { Place } from './options.ts'
import { type Shared, shareOut } from './share-out.ts'

/** What a commit must say about who commits. */
export interface Identity {
  readonly memberId: string
  readonly generation: number
}

/**
 * One consumer in its group, by the classic protocol with cooperative rebalances. It heartbeats by itself, whatever the
 * handlers do, so a slow handler never leaves the group.
 */
export interface Member {
  /** Of the last assignment; undefined when there is none or it was taken away. */
  identity(): Identity | undefined
  /** By our clock the group may have given our partitions away; if so, all are lost from here on. See `SignsOfLife`. */
  isOver(): boolean
  /** Something of ours was given up, so that others can have it now. */
  rejoin(): void
  /** A commit said that we are not in the group any more, or the coordinator is another one. */
  doubt(error: unknown, identity: Identity): void
  /** What keeps it from joining, in a sentence. */
  problem(): string | undefined
  /** Leaves the group; bounded in time. */
  close(): Promise<void>
}

export interface MemberParts {
  readonly cluster: Cluster
  readonly client: Client
  readonly coordinator: Coordinator
  readonly queue: string
  readonly place: Place
  readonly owned: () => readonly number[]
  /** @param addedFrom see `firstAdded` */
  readonly onAssigned: (partitions: readonly number[], addedFrom: number | undefined) => void
  /** All partitions are somebody else's, or will be. */
  readonly onLost: (why: string) => void
}

const PROTOCOL = 'cooperative-sticky'
const BACKOFF_FIRST_MS = 50
const BACKOFF_MAX_MS = 2_000
const LEAVE_MS = 2_000

interface State {
  memberId: string
  generation: number
  /** See `firstAdded`. */
  addedFrom: number | undefined
  /** What we have shared out as the group's leader, last. */
  shared: Shared | undefined
  isStable: boolean
  mustRejoin: boolean
  signs: SignsOfLife
  problem: string | undefined
  failingSince: number | undefined
}

/** A group that forms, or a cluster that has just started, says no for some seconds. That is no news for anybody. */
const FORMING_MS = 5_000
const FORMING: readonly number[] = [
  codes.coordinatorLoading,
  codes.coordinatorNotAvailable,
  codes.notCoordinator,
  codes.illegalGeneration,
  codes.unknownMember,
  codes.memberIdRequired,
]

export function startMember(parts: MemberParts): Member {
  const { cluster, coordinator, onLost } = parts
  const { clock, options } = cluster
  const closing = new AbortController()
  let wake = new AbortController()
  const fresh = (): SignsOfLife => signsOfGroup(cluster, (why) => abandon(why))
  const state = stateOf(fresh())
  const nudge = (): void => {
    wake.abort()
    wake = new AbortController()
  }
  const abandon = (why: string): void => {
    drop(why)
    nudge()
  }
  const drop = (why: string): void => {
    const had = state.isStable
    state.isStable = false
    state.mustRejoin = true
    state.shared = undefined
    state.signs = fresh()
    if (had) onLost(why)
  }
  const suffer = (error: unknown): void => {
    const found = codesIn(error)
    if (found.has(codes.unknownMember) || found.has(codes.fencedInstance)) {
      state.memberId = ''
      drop('the group has removed this consumer')
    } else if (found.has(codes.illegalGeneration))
      drop('the group has gone on without this consumer')
    else if (found.has(codes.rebalanceInProgress)) state.mustRejoin = true
    else coordinator.forget()
    if (state.signs.silentMs() >= options.sessionTimeoutMs) drop('its session has ended')
  }
  const rejoin = (): void => {
    state.mustRejoin = true
    nudge()
  }
  const growth = growthWatch({ ...parts, onChanged: rejoin })
  const run = async (): Promise<void> => {
    let backoffMs = BACKOFF_FIRST_MS
    while (!closing.signal.aborted) {
      try {
        if (state.mustRejoin || !state.isStable) await join(parts, state)
        else await beat(parts, state)
        state.problem = undefined
        state.failingSince = undefined
        backoffMs = BACKOFF_FIRST_MS
        growth.look(state.shared?.partitions)
        if (!state.mustRejoin) await pause(clock, options.heartbeatMs, wake.signal)
      } catch (error) {
        suffer(error)
        if (codesIn(error).has(codes.rebalanceInProgress)) continue
        note(parts, state, error)
        await pause(clock, backoffMs, closing.signal)
        backoffMs = Math.min(BACKOFF_MAX_MS, backoffMs * 2)
      }
    }
  }
  const ended = run()
  return {
    identity: () => (state.isStable ? identityOf(state) : undefined),
    isOver: () => state.signs.isOver(),
    rejoin,
    doubt: (error, { generation, memberId }) => {
      const isCurrent = generation === state.generation && memberId === state.memberId
      if (isCurrent) suffer(error)
      nudge()
    },
    problem: () => state.problem,
    close: async () => {
      if (closing.signal.aborted) return
      closing.abort()
      nudge()
      await leave(parts, state)
      // A join that is under way ends with its connection.
      void ended
    },
  }
}

function stateOf(signs: SignsOfLife): State {
  return {
    memberId: '',
    generation: -1,
    addedFrom: undefined,
    shared: undefined,
    isStable: false,
    mustRejoin: true,
    signs,
    problem: undefined,
    failingSince: undefined,
  }
}

function identityOf({ memberId, generation }: State): Identity {
  return { memberId, generation }
}

function note({ cluster, place }: MemberParts, state: State, error: unknown): void {
  const now = cluster.clock.now()
  state.failingSince ??= now
  const found = codesIn(error)
  const isForming = FORMING.some((code) => found.has(code)) && now - state.failingSince < FORMING_MS
  if (isForming) return
  const problem = `kafka: group "${place.group}" cannot be joined: ${saidBy(error)}`
  if (state.problem === undefined) cluster.logger.warn(problem)
  state.problem = problem
}

function callOf({ cluster, client }: MemberParts, broker: Call['broker'], what: string): Call {
  return { cluster, client, broker, what }
}

async function join(parts: MemberParts, state: State): Promise<void> {
  const joined = new AbortController()
  void beatWhileJoining(parts, state, joined.signal)
  try {
    await joinAndSync(parts, state)
  } finally {
    joined.abort()
  }
}

async function joinAndSync(parts: MemberParts, state: State): Promise<void> {
  const { cluster, coordinator, place, onAssigned } = parts
  const { clock, module, options } = cluster
  const rebalanceMs = rebalanceMsOf(options)
  const metadata = writeSubscription({
    topics: [place.topic],
    owned: new Map([[place.topic, parts.owned()]]),
    generation: state.generation,
    addedFrom: state.addedFrom,
  })
  const broker = await coordinator.find()
  // Not before: who does not even find the coordinator has still to join.
  state.mustRejoin = false
  const call = {
    ...callOf(parts, broker, 'joining a group'),
    limitMs: rebalanceMs + REBALANCE_SLACK_MS,
  }
  const joined = await ask(
    call,
    module.joinGroupV9.api,
    ...([place.group, options.sessionTimeoutMs, rebalanceMs, state.memberId, null] as const),
    'consumer',
    [{ name: PROTOCOL, metadata }],
    null,
  ).catch((error: unknown) => {
    state.mustRejoin = true
    const named = memberIdIn(error)
    if (named === undefined) throw error
    state.memberId = named
    return undefined
  })
  if (joined === undefined) return
  state.memberId = joined.memberId
  state.generation = joined.generationId
  try {
    const isLeader = joined.leader === joined.memberId
    state.shared = isLeader ? await shareOut(parts, joined.members) : undefined
    const shares = state.shared?.shares ?? []
    const { memberId, generation } = state
    const askedAt = clock.now()
    const { assignment } = await ask(
      callOf(parts, broker, 'the assignment of partitions'),
      module.syncGroupV5.api,
      ...([place.group, generation, memberId, null, 'consumer', PROTOCOL, shares] as const),
    )
    state.signs.answered(askedAt)
    state.isStable = true
    const { partitions, addedFrom } = readAssignment(assignment)
    state.addedFrom = addedFrom
    onAssigned(partitions.get(place.topic) ?? [], addedFrom)
  } catch (error) {
    state.mustRejoin = true
    throw error
  }
}

/** A new consumer is told its name first, and joins again with it (KIP-394). */
function memberIdIn(error: unknown): string | undefined {
  if (!codesIn(error).has(codes.memberIdRequired)) return undefined
  if (typeof error !== 'object' || error === null || !('response' in error)) return undefined
  const { response } = error
  if (typeof response !== 'object' || response === null || !('memberId' in response))
    return undefined
  return typeof response.memberId === 'string' ? response.memberId : undefined
}

async function leave(parts: MemberParts, state: State): Promise<void> {
  const { cluster, coordinator, place } = parts
  if (state.memberId === '') return
  const members = [{ memberId: state.memberId, reason: 'closed' }]
  const asking = async (): Promise<void> => {
    const call = callOf(parts, await coordinator.find(), 'leaving a group')
    await ask(call, cluster.module.leaveGroupV5.api, place.group, members)
  }
  // When nobody answers, not even who coordinates, the group notices at the end of the session.
  await withinLimit(cluster, 'leaving a group', asking(), undefined, LEAVE_MS).catch(() => {})
}
