import type { Sent } from '../../model/delivery.ts'
import type { Envelope } from '../../model/envelope.ts'
import { nextOf, refused } from '../../transport/outcomes.ts'
import { type EnvelopeBounds, refusalOf, reservedHeader } from '../../transport/refusal.ts'
import type { Transport } from '../../transport/transport.ts'
import type { Broker } from './broker.ts'
import { entrance } from './ladder.ts'
import { contentOf, headersOf, impossibleHeader, type SendingTime, sendingTime } from './message.ts'
import { type Place, placeOf, straightTo } from './names.ts'
import type { Resolved } from './options.ts'
import type { Publication } from './outlet.ts'
import type { Publisher } from './publisher.ts'

/** Of one queue: where each of its messages goes. */
export type Placing = (queue: string) => (envelope: Envelope) => Place

export function sender(
  broker: Broker,
  publisher: Publisher,
  bounds: EnvelopeBounds,
  placing: Placing,
): Transport['send'] {
  return async (queue, batch, options) => {
    const now = broker.clock.now()
    const how = {
      ...{ broker, queue, bounds, now },
      isWhole: options.atomic === true && batch.length > 1,
      at: sendingTime(now),
      placeOf: placing(queue),
    }
    const judged = batch.map((envelope) => judge(envelope, how))
    const wanted = judged.filter((one): one is Publication => 'content' in one)
    const answers = (await publisher.publish(wanted, options.signal)).values()
    return judged.map((one): Sent => ('content' in one ? nextOf(answers) : one))
  }
}

/** What all messages of a batch share. */
interface Sending {
  readonly broker: Broker
  readonly queue: string
  readonly bounds: EnvelopeBounds
  /** All or nothing. */
  readonly isWhole: boolean
  readonly now: number
  readonly at: SendingTime
  readonly placeOf: (envelope: Envelope) => Place
}

/** What goes to the broker, or the answer to what cannot. */
function judge(envelope: Envelope, sending: Sending): Publication | Sent {
  const { broker, queue, bounds, isWhole, now, at } = sending
  const refusal = refusalOf(envelope, bounds)
  if (refusal !== undefined) return refusal
  const delayMs = delayOf(envelope, now)
  const isKept = (envelope.remember?.length ?? 0) === 0 && !isWhole
  const isDelayable = delayMs === 0 || (bounds.delay !== 'none' && delayMs <= bounds.delay.maxMs)
  if (!isKept || !isDelayable) return refused('invalid')
  const impossible = impossibleHeader(envelope)
  if (impossible !== undefined) return reservedHeader(impossible)
  const place = sending.placeOf(envelope)
  const { exchange, routingKey } =
    entrance(broker.options.delayPrefix, place.queue, delayMs) ?? place
  return {
    exchange,
    routingKey,
    content: contentOf(envelope),
    properties: {
      mandatory: true,
      persistent: true,
      messageId: envelope.id,
      timestamp: at.seconds,
    },
    headers: headersOf(queue, envelope, at),
  }
}

/** To the queue that has this name here, by the exchange that the user named. */
export function ofQueue(options: Resolved): Placing {
  return (name) => {
    const place = placeOf(options, name)
    const straight = straightTo(place)
    return (envelope) => (isCopy(envelope) ? straight : place)
  }
}

/** It goes on with a message that this queue already had; other queues of the exchange had theirs. */
function isCopy({ copy = 0 }: Envelope): boolean {
  return copy > 0
}

function delayOf({ delayMs = 0, readyAt }: Envelope, now: number): number {
  return readyAt === undefined ? delayMs : Math.max(0, readyAt - now)
}
