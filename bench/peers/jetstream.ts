import { type ConsumerMessages, jetstreamManager } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'
import type { Opened, Parcel, Place } from '../contender.ts'

const STREAM = 'parcels'
const CONSUMER = 'workers'
/** As many unacked at once as the widest of ours. */
const CONCURRENCY = 256

/** The client alone, with what makes it as safe: known ids, confirmed publishes, confirmed acks. */
export async function open(place: Place, _variant: string): Promise<Opened> {
  const nc = await connect({ servers: place.url })
  const manager = await jetstreamManager(nc)
  const js = manager.jetstream()
  await manager.streams.add({ name: STREAM, subjects: [STREAM], retention: 'workqueue' })
  await manager.consumers.add(STREAM, { durable_name: CONSUMER, ack_policy: 'explicit' })
  const working: ConsumerMessages[] = []
  const publish = async (parcel: Parcel): Promise<void> => {
    await js.publish(STREAM, JSON.stringify(parcel), { msgID: crypto.randomUUID() })
  }
  return {
    send: publish,
    async sendMany(parcels) {
      await Promise.all(parcels.map(publish))
    },
    async work(run) {
      const consumer = await js.consumers.get(STREAM, CONSUMER)
      const messages = await consumer.consume({ max_messages: CONCURRENCY })
      working.push(messages)
      consumeAll(messages, run).catch(() => {})
    },
    remaining: async () => (await manager.streams.info(STREAM)).state.messages,
    async close() {
      for (const messages of working) await messages.close()
      await nc.close()
    },
  }
}

async function consumeAll(
  messages: ConsumerMessages,
  run: (parcel: Parcel) => void,
): Promise<void> {
  for await (const message of messages) {
    run(message.json<Parcel>())
    message.ackAck().catch(() => {})
  }
}
