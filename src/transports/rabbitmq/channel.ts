import { read } from '../../model/probe.ts'
import type { AmqpChannel } from './amqp-shapes.ts'
import type { Broker } from './broker.ts'
import { withinLimit } from './limit.ts'

/** Asks on a channel of its own: an answer that is no (404, 406) closes the channel, which must be no other's. */
export async function throwAway<T>(
  broker: Broker,
  ask: (channel: AmqpChannel) => Promise<T>,
  signal?: AbortSignal,
): Promise<T> {
  const opening = broker.consuming.current().createChannel()
  const channel = await withinLimit(broker, 'opening a channel', opening, signal)
  channel.on('error', () => {})
  try {
    return await withinLimit(broker, 'a question', ask(channel), signal)
  } finally {
    // Throws at once when it is closed already.
    Promise.resolve()
      .then(() => channel.close())
      .catch(() => {})
  }
}

/** Whether the broker has what a passive question asks for. */
export async function exists(
  broker: Broker,
  look: (channel: AmqpChannel) => Promise<unknown>,
  signal: AbortSignal,
): Promise<boolean> {
  try {
    await throwAway(broker, look, signal)
    return true
  } catch (error) {
    if (read(error, 'code') === 404) return false
    throw error
  }
}
