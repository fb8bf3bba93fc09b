import type { Delivery } from '../../model/delivery.ts'
import type { Bell } from '../../transport/bell.ts'
import type { Ends } from '../../transport/ends.ts'
import type { ReceiveOptions } from '../../transport/transport.ts'
import type { Attached, Attachment } from './attachment.ts'
import type { Broker } from './broker.ts'
import type { Lane, LaneShares } from './lane-shares.ts'
import type { RosterConsumer } from './roster.ts'

export interface LaneReceiving {
  readonly broker: Broker
  readonly lanes: readonly Lane[]
  readonly roster: Attachment<RosterConsumer>
  readonly shares: LaneShares
  readonly bell: Bell<'here'>
}

/** How long the first receive looks for what the broker begins to push. */
const FIRST_LOOK_MS = 50

export async function receivingFromLanes(
  parts: LaneReceiving,
  options: ReceiveOptions,
  ends: Ends,
): Promise<readonly Delivery[]> {
  const { broker, lanes, roster, bell } = parts
  const { clock } = broker
  let endAt = clock.now() + options.waitMs
  while (!ends.reached()) {
    const since = bell.rings('here')
    begin(roster)
    const begun = lanes.filter(begin).length
    const deliveries = takeFrom(parts, Math.max(1, options.max))
    if (deliveries.length > 0) return deliveries
    if (begun > 0) endAt = Math.max(endAt, clock.now() + FIRST_LOOK_MS)
    for (const lane of lanes) {
      const missing = lane.missing()
      if (missing !== undefined) throw missing
    }
    const leftMs = endAt - clock.now()
    if (leftMs > 0) {
      await bell.wait('here', since, leftMs, ends.signal())
      continue
    }
    const away = lanes.map((lane) => lane.away())
    if (!away.includes(undefined)) throw away[0]
    break
  }
  return []
}

interface Beginning extends Attached {
  isOn(): boolean
  start(): Promise<void>
}

/** Whether it was to be begun. */
function begin<C extends Beginning>(to: Attachment<C>): boolean {
  const consumer = to.consumer()
  if (consumer === undefined || consumer.isOn()) return false
  consumer.start().catch((error: unknown) => to.failed(consumer, error))
  return true
}

/** From another lane on each time, so that none is always the last one. */
function takeFrom({ broker, lanes, shares }: LaneReceiving, max: number): readonly Delivery[] {
  const first = Math.floor(broker.random() * lanes.length)
  const taken: Delivery[] = []
  for (let n = 0; n < lanes.length && taken.length < max; n++) {
    const consumer = lanes[(first + n) % lanes.length]?.consumer()
    if (consumer === undefined || shares.isLeaving(consumer)) continue
    taken.push(...consumer.take(max - taken.length))
  }
  return taken
}
