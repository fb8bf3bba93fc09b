import type { Sent } from '../../model/delivery.ts'
import type { Envelope } from '../../model/envelope.ts'
import { refused } from '../../transport/outcomes.ts'
import { type EnvelopeBounds, refusalOf, reservedHeader } from '../../transport/refusal.ts'
import type { SendOptions, Transport } from '../../transport/transport.ts'
import type { Broker } from './broker.ts'
import { entrance } from './ladder.ts'
import { contentOf, impossibleHeader, propertiesOf } from './message.ts'
import { placeOf } from './names.ts'
import type { Publication, Publisher } from './publisher.ts'

export function sender(
  broker: Broker,
  publisher: Publisher,
  bounds: EnvelopeBounds,
): Transport['send'] {
  return async (queue, batch, options) => {
    const judged = batch.map((envelope) =>
      judge(broker, queue, envelope, bounds, batch.length, options),
    )
    const wanted = judged.filter((one): one is Publication => 'content' in one)
    const answers = (await publisher.publish(wanted, options.signal)).values()
    return judged.map((one): Sent => ('content' in one ? next(answers) : one))
  }
}

function next(answers: Iterator<Sent>): Sent {
  const { done, value } = answers.next()
  return done ? refused('unknown', { outcome: 'unknown' }) : value
}

/** What goes to the broker, or the answer to what cannot. */
function judge(
  { options, clock }: Broker,
  queue: string,
  envelope: Envelope,
  bounds: EnvelopeBounds,
  size: number,
  { atomic = false }: SendOptions,
): Publication | Sent {
  const now = clock.now()
  const refusal = refusalOf(envelope, bounds)
  if (refusal !== undefined) return refusal
  const delayMs = delayOf(envelope, now)
  const isKept = (envelope.remember?.length ?? 0) === 0 && !(atomic && size > 1)
  const isDelayable = delayMs === 0 || (bounds.delay !== 'none' && delayMs <= bounds.delay.maxMs)
  if (!isKept || !isDelayable) return refused('invalid')
  const impossible = impossibleHeader(envelope)
  if (impossible !== undefined) return reservedHeader(impossible)
  const place = placeOf(options, queue)
  return {
    ...(entrance(options.delayPrefix, place.queue, delayMs) ?? place),
    content: contentOf(envelope),
    properties: propertiesOf(queue, envelope, now),
  }
}

function delayOf({ delayMs = 0, readyAt }: Envelope, now: number): number {
  return readyAt === undefined ? delayMs : Math.max(0, readyAt - now)
}
