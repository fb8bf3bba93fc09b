import { pause } from '../../model/clock.ts'
import type { Attachment } from './attachment.ts'
import type { Broker } from './broker.ts'
import type { LaneConsumer } from './lane-consumer.ts'
import { toGiveUp } from './lane-share.ts'
import { withinLimit } from './limit.ts'
import type { RosterConsumer } from './roster.ts'

export type Lane = Attachment<LaneConsumer>

/** Which lanes one subscription should leave to others, and when it can. */
export interface LaneShares {
  /** Somebody asks, until the result is called. */
  asked(): () => void
  /** Nothing more is handed out from it. */
  isLeaving(consumer: LaneConsumer): boolean
  /** Gives up what is to be given up and where nothing runs any more. */
  giveUp(): void
  /** Looks now and then what is to be given up, until the close. */
  run(): Promise<void>
}

export interface LaneSharesParts {
  readonly broker: Broker
  readonly lanes: readonly Lane[]
  readonly roster: Attachment<RosterConsumer>
  readonly window: () => number
  readonly closing: AbortSignal
}

/** How often it looks whether others should have some of its lanes. */
const SHARE_MS = 2_000
/** Who has not asked for so long gives up the lanes in which nothing runs, if others ask. */
const UNASKED_MS = 5_000
/** Of the broker's consumer timeout: what came so long ago goes back before the broker takes it back, with all that runs. */
const EXPIRED = 0.75

export function laneShares(parts: LaneSharesParts): LaneShares {
  const { broker, lanes, roster, window, closing } = parts
  const { clock, options, random } = broker
  const leaving = new Set<LaneConsumer>()
  let receivers = 0
  let askedAt = clock.now()

  const isExpired = (consumer: LaneConsumer): boolean =>
    clock.now() - (consumer.since() ?? clock.now()) > options.consumerTimeoutMs * EXPIRED
  const isUnasked = (): boolean => receivers === 0 && clock.now() - askedAt >= UNASKED_MS

  const giveUp = (): void => {
    for (const lane of leaving.size === 0 ? [] : lanes) {
      const consumer = lane.consumer()
      if (consumer === undefined || !leaving.has(consumer) || consumer.isBusy()) continue
      if (consumer.isHolding() && !isExpired(consumer)) continue
      leaving.delete(consumer)
      lane.renew(consumer)
    }
  }
  const look = async (): Promise<void> => {
    const mine = roster.consumer()
    const askers =
      mine && (await withinLimit(broker, 'counting who asks', mine.count()).catch(() => undefined))
    const own = mine?.isOn() ? 1 : 0
    const all = lanes.flatMap((lane) => lane.consumer() ?? [])
    leaving.clear()
    for (const one of all) if (isExpired(one)) leaving.add(one)
    if (isUnasked() && (askers ?? 0) > own) {
      // Others share the lanes by how many ask.
      if (mine !== undefined && own > 0) roster.renew(mine)
      for (const one of all) if (one.isOn()) leaving.add(one)
    } else {
      const sharing = { askers, lanes: lanes.length, window: window() }
      for (const one of toGiveUp(all, sharing)) leaving.add(one)
    }
    giveUp()
  }
  return {
    asked() {
      receivers += 1
      return () => {
        receivers -= 1
        askedAt = clock.now()
      }
    },
    isLeaving: (consumer) => leaving.has(consumer),
    giveUp,
    async run() {
      while (!closing.aborted) {
        await pause(clock, SHARE_MS * (0.75 + random() / 2), closing)
        if (!closing.aborted) await look()
      }
    },
  }
}
