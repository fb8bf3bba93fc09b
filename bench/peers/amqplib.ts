import { type Channel, type ConfirmChannel, connect } from 'amqplib'
import type { Opened, Parcel, Place } from '../contender.ts'

const QUEUE = 'parcels'
/** As many unacked at once as the widest of ours. */
const PREFETCH = 256

/** The client alone, with what makes it as safe: a quorum queue, persistent, confirmed, acked by hand, known ids. */
export async function open(place: Place, _variant: string): Promise<Opened> {
  const connection = await connect(place.url, { noDelay: true })
  const consuming = await connect(place.url, { noDelay: true })
  const publishing: ConfirmChannel = await connection.createConfirmChannel()
  const asking: Channel = await connection.createChannel()
  await asking.assertQueue(QUEUE, { durable: true, arguments: { 'x-queue-type': 'quorum' } })
  const send = (parcel: Parcel): Promise<void> =>
    new Promise((resolve, reject) => {
      const content = Buffer.from(JSON.stringify(parcel))
      const options = { persistent: true, mandatory: true, messageId: crypto.randomUUID() }
      publishing.publish('', QUEUE, content, options, (error) =>
        error ? reject(error) : resolve(),
      )
    })
  return {
    send,
    async sendMany(parcels) {
      await Promise.all(parcels.map(send))
    },
    async work(run) {
      const channel = await consuming.createChannel()
      await channel.prefetch(PREFETCH)
      await channel.consume(QUEUE, (message) => {
        if (message === null) return
        run(JSON.parse(message.content.toString()))
        channel.ack(message)
      })
    },
    remaining: async () => (await asking.checkQueue(QUEUE)).messageCount,
    async close() {
      await connection.close()
      await consuming.close()
    },
  }
}
