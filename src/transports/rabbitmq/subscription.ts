import { closedError } from '../../model/closed-error.ts'
import type { Delivery } from '../../model/delivery.ts'
import { newId } from '../../model/ids.ts'
import { type Bell, openBell } from '../../transport/bell.ts'
import { type Ends, untilEnded } from '../../transport/ends.ts'
import type { ReceiveOptions, Subscription } from '../../transport/transport.ts'
import { type Attached, type Attachment, attach } from './attachment.ts'
import type { Broker } from './broker.ts'
import { type Consumer, openConsumer } from './consumer.ts'
import { endsWithin } from './limit.ts'
import { type PushWindow, pushWindow } from './push-window.ts'
import { settleBatch } from './settle.ts'

export interface SubscriptionParts {
  readonly broker: Broker
  /** As the caller knows it, and as the broker does. */
  readonly name: string
  readonly queue: string
  readonly maxInFlight: number
  readonly onClose: () => void
}

/** What was pushed and nobody has asked for goes back to the queue after this long: others may be free. */
const UNASKED_MS = 250
/** How long the first receive looks for what the broker begins to push; of levels of priority that tells which is the first. */
const FIRST_LOOK_MS = 250
const CLOSE_TIMEOUT_MS = 2_000

export async function rabbitSubscription(parts: SubscriptionParts): Promise<Subscription> {
  const { broker, name, queue, onClose } = parts
  const { clock, random } = broker
  const closing = new AbortController()
  const bell = openBell<'here'>(clock)
  const window = pushWindow(parts.maxInFlight, UNASKED_MS)
  let receivers = 0
  let cancelPark: (() => void) | undefined

  const parkSoon = (): void => {
    if (receivers > 0 || cancelPark !== undefined) return
    cancelPark = clock.after(UNASKED_MS, () => {
      cancelPark = undefined
      const consumer = attachment.consumer()
      if (receivers > 0 || consumer === undefined || consumer.buffered() === 0) return
      window.givenBack()
      consumer.park().catch(() => {})
    })
  }
  const onNews = (): void => {
    bell.ring()
    parkSoon()
  }
  const counts = broker.options.queueType === 'quorum'
  const prefetch = window.limit
  const reading = () => ({ newId: () => newId(clock, random), now: clock.now() })
  const attachment = await attach({
    ...{ broker, name, queue, onNews, closing: closing.signal, tellsLoss: true },
    put: (on, onCancelled) =>
      openConsumer({ ...on, queue, counts, prefetch, reading, onNews, onCancelled }),
  })

  let closed: Promise<void> | undefined
  const close = async (): Promise<void> => {
    const consumer = attachment.consumer()
    consumer?.lose()
    closing.abort()
    cancelPark?.()
    bell.close()
    onClose()
    if (consumer !== undefined) await letGo(parts, consumer)
  }

  return {
    async receive(options) {
      if (closing.signal.aborted) throw closedError('the subscription')
      const signals = [options.signal, closing.signal, broker.closing]
      receivers += 1
      cancelPark?.()
      cancelPark = undefined
      try {
        return await untilEnded(signals, (ends) =>
          receiving({ broker, attachment, window, bell, ends }, options),
        )
      } finally {
        receivers -= 1
        if (attachment.consumer()?.buffered()) parkSoon()
      }
    },
    settle: (batch) => settleBatch(broker, attachment, batch),
    resize(next) {
      window.resize(next)
      const consumer = attachment.consumer()
      // A quorum queue keeps a consumer's limit as it was at its start.
      if (consumer?.isOn() === true) consumer.park().catch(() => {})
    },
    close() {
      closed ??= close()
      return closed
    },
  }
}

/** Whatever does not close in time goes away with its connection. */
export async function letGo(
  { broker, name }: Pick<SubscriptionParts, 'broker' | 'name'>,
  consumer: Attached,
): Promise<void> {
  const { clock, consuming, closing, logger } = broker
  if (await endsWithin(clock, CLOSE_TIMEOUT_MS, consumer.close())) return
  if (closing.aborted) return
  logger.warn(`rabbitmq: the channel of queue "${name}" did not close; its connection is dropped`)
  consuming.drop('a channel did not close')
}

interface Receiving {
  readonly broker: Broker
  readonly attachment: Attachment<Consumer>
  readonly window: PushWindow
  readonly bell: Bell<'here'>
  readonly ends: Ends
}

async function receiving(
  { broker, attachment, window, bell, ends }: Receiving,
  options: ReceiveOptions,
): Promise<readonly Delivery[]> {
  const { clock } = broker
  let endAt = clock.now() + options.waitMs
  while (!ends.reached()) {
    const since = bell.rings('here')
    const consumer = attachment.consumer()
    const deliveries = consumer?.take(Math.max(1, options.max)) ?? []
    if (deliveries.length > 0) {
      window.taken(clock.now())
      return deliveries
    }
    window.ask(options.max)
    if (consumer?.isOn() === true && window.isTooSmall(consumer.room())) {
      consumer.park().catch(() => {})
    }
    if (consumer !== undefined && !consumer.isOn()) {
      const started = consumer.start()
      started.catch((error: unknown) => attachment.failed(consumer, error))
      endAt = Math.max(endAt, clock.now() + FIRST_LOOK_MS)
    }
    const missing = attachment.missing()
    if (missing !== undefined) throw missing
    const leftMs = endAt - clock.now()
    if (leftMs > 0) {
      await bell.wait('here', since, leftMs, ends.signal())
      continue
    }
    const away = attachment.away()
    if (away !== undefined) throw away
    break
  }
  return []
}
