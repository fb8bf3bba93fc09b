import { closedError } from '../../model/closed-error.ts'
import { newId } from '../../model/ids.ts'
import { openBell } from '../../transport/bell.ts'
import { untilEnded } from '../../transport/ends.ts'
import type { Subscription } from '../../transport/transport.ts'
import { type Attached, type Attachment, attach } from './attachment.ts'
import type { Broker } from './broker.ts'
import { type LaneConsumer, openLaneConsumer } from './lane-consumer.ts'
import type { LanePlace } from './lane-place.ts'
import { type LaneReceiving, receivingFromLanes } from './lane-receive.ts'
import { settleInLanes } from './lane-settle.ts'
import { type Lane, type LaneShares, laneShares } from './lane-shares.ts'
import { openRosterConsumer, type RosterConsumer } from './roster.ts'
import { letGo } from './subscription.ts'

export interface LaneSubscriptionParts {
  readonly broker: Broker
  /** As the caller knows it. */
  readonly name: string
  readonly place: LanePlace
  readonly maxInFlight: number
  readonly onClose: () => void
}

/**
 * Takes part in every lane of the queue. The broker hands a lane to one consumer at a time, the first one that came; so that all
 * have work, each gives up what is above its share.
 */
export async function laneSubscription(parts: LaneSubscriptionParts): Promise<Subscription> {
  const { broker, name, place, onClose } = parts
  const closing = new AbortController()
  const bell = openBell<'here'>(broker.clock)
  let { maxInFlight } = parts
  let shares: LaneShares | undefined
  const window = (): number => windowOf(maxInFlight, place.lanes.length)
  const onNews = (): void => {
    shares?.giveUp()
    bell.ring()
  }
  const common = { broker, closing: closing.signal }
  const opening = place.lanes.map((lane) => openLane({ ...common, name, lane, window, onNews }))
  const roster = openRoster({ ...common, roster: place.roster })
  const [lanes, onRoster] = await allOrNone(opening, roster, closing)
  const sharing = laneShares({ ...common, lanes, roster: onRoster, window })
  shares = sharing
  void sharing.run()

  const receiving: LaneReceiving = { broker, lanes, roster: onRoster, shares: sharing, bell }
  let closed: Promise<void> | undefined
  const close = async (): Promise<void> => {
    const attachments: readonly Attachment<Attached>[] = [...lanes, onRoster]
    const consumers = attachments.flatMap((one) => one.consumer() ?? [])
    for (const consumer of consumers) consumer.lose()
    closing.abort()
    bell.close()
    onClose()
    await Promise.all(consumers.map((consumer) => letGo({ broker, name }, consumer)))
  }
  return {
    async receive(options) {
      if (closing.signal.aborted) throw closedError('the subscription')
      const signals = [options.signal, closing.signal, broker.closing]
      const stopped = sharing.asked()
      try {
        return await untilEnded(signals, (ends) => receivingFromLanes(receiving, options, ends))
      } finally {
        stopped()
      }
    },
    settle: (batch) => settleInLanes(broker, batch),
    resize(next) {
      maxInFlight = next
    },
    close() {
      closed ??= close()
      return closed
    },
  }
}

interface Opening {
  readonly broker: Broker
  readonly closing: AbortSignal
}

interface LaneOpening extends Opening {
  readonly name: string
  readonly lane: string
  readonly window: () => number
  readonly onNews: () => void
}

function openLane({ lane, window, onNews, ...common }: LaneOpening): Promise<Lane> {
  const { clock, random } = common.broker
  const reading = () => ({ newId: () => newId(clock, random), now: clock.now() })
  return attach<LaneConsumer>({
    ...{ ...common, queue: lane, onNews, tellsLoss: false },
    put: (on, onCancelled) =>
      openLaneConsumer({
        ...{ ...on, lane, clock, reading, onNews, onCancelled },
        prefetch: window,
      }),
  })
}

function openRoster({
  roster,
  ...common
}: Opening & { readonly roster: string }): Promise<Attachment<RosterConsumer>> {
  return attach<RosterConsumer>({
    ...{ ...common, name: roster, queue: roster, onNews() {}, tellsLoss: true },
    put: ({ channel }, onCancelled) => openRosterConsumer(channel, roster, onCancelled),
  })
}

/** Where one of them cannot be opened, the others are closed. */
async function allOrNone<R extends Attached>(
  lanes: readonly Promise<Lane>[],
  roster: Promise<Attachment<R>>,
  closing: AbortController,
): Promise<readonly [readonly Lane[], Attachment<R>]> {
  try {
    return [await Promise.all(lanes), await roster]
  } catch (error) {
    closing.abort()
    for (const one of await Promise.allSettled<Attachment<Attached>>([...lanes, roster])) {
      if (one.status === 'fulfilled')
        one.value
          .consumer()
          ?.close()
          .catch(() => {})
    }
    throw error
  }
}

/** What the broker may push of a lane: together what may be in flight, and at least one of each. */
function windowOf(maxInFlight: number, lanes: number): number {
  return Math.min(PREFETCH_MAX, Math.max(1, Math.ceil(maxInFlight / lanes)))
}

/** Of a queue, in messages (AMQP 0-9-1, basic.qos). */
const PREFETCH_MAX = 65_535
