import { pause } from '../../model/clock.ts'
import { type SignsOfLife, signsOfLife } from '../../transport/signs-of-life.ts'
import { ask, type Client, type Cluster } from './client.ts'
import type { Coordinator } from './coordinator.ts'
import { codes, codesIn } from './fault.ts'
import type { Place, Resolved } from './options.ts'

/** Where heartbeats go. */
export interface Heart {
  readonly cluster: Cluster
  readonly client: Client
  readonly coordinator: Coordinator
  readonly place: Place
}

/** Whose they are, as it is when one is sent, and what the answers tell. */
export interface Beating {
  readonly memberId: string
  readonly generation: number
  readonly signs: SignsOfLife
  /** It has partitions. */
  readonly isStable: boolean
}

/** A join answers when all members have joined, at the latest after this. */
export const REBALANCE_SLACK_MS = 5_000

/** How long the group waits for its members to join, once it shares out its partitions anew. */
export function rebalanceMsOf({
  revokeDrainMs,
  heartbeatMs,
}: Pick<Resolved, 'revokeDrainMs' | 'heartbeatMs'>): number {
  return revokeDrainMs + 2 * heartbeatMs + REBALANCE_SLACK_MS
}

/** @param onOver our partitions may be somebody else's */
export function signsOfGroup(
  { clock, options }: Pick<Cluster, 'clock' | 'options'>,
  onOver: (why: string) => void,
): SignsOfLife {
  return signsOfLife({
    clock,
    // Whoever does not join within the time of a rebalance is left out, though its session goes on.
    patienceMs: Math.min(options.sessionTimeoutMs, rebalanceMsOf(options)),
    onOver: (ms) => onOver(`this process stood still, or the group answered nothing, for ${ms} ms`),
  })
}

export async function beat(heart: Heart, beating: Beating): Promise<void> {
  await heartbeat(heart, beating, leftMs(heart, beating))
}

/** Behind the end of the session nobody needs the answer. */
function leftMs({ cluster: { options } }: Heart, { signs }: Beating): number {
  return Math.min(Math.max(1, options.sessionTimeoutMs - signs.silentMs()), options.timeoutMs)
}

/**
 * While a join waits for the other members, handlers go on, and the group must go on to tell that it knows us: on another
 * connection, as that of the join waits with it. A group that is silent then takes the partitions with it like any other; the
 * join itself would only say so seconds after the session.
 */
export async function beatWhileJoining(
  heart: Heart,
  beating: Beating,
  joined: AbortSignal,
): Promise<void> {
  const { clock, options, asking } = heart.cluster
  for (;;) {
    await pause(clock, options.heartbeatMs, joined)
    if (joined.aborted) return
    if (beating.memberId === '') continue
    const askedAt = clock.now()
    const limitMs = beating.isStable ? leftMs(heart, beating) : options.timeoutMs
    try {
      await heartbeat({ ...heart, client: asking }, beating, limitMs)
    } catch (error) {
      // That it shares out anew is an answer, too, as we take part in it. Of all else the join itself will hear.
      if (codesIn(error).has(codes.rebalanceInProgress)) beating.signs.answered(askedAt)
      if (beating.isStable) beating.signs.isOver()
    }
  }
}

async function heartbeat(
  { cluster, client, coordinator, place }: Heart,
  beating: Beating,
  limitMs: number,
): Promise<void> {
  const { clock, module } = cluster
  const askedAt = clock.now()
  const { generation, memberId } = beating
  const call = { cluster, client, broker: await coordinator.find(), what: 'a heartbeat', limitMs }
  await ask(call, module.heartbeatV4.api, place.group, generation, memberId, null)
  beating.signs.answered(askedAt)
}
