import {
  Consumer,
  type MessagesStream,
  Producer,
  stringDeserializers,
  stringSerializers,
} from '@platformatic/kafka'
import type { Opened, Parcel, Place } from '../contender.ts'
import { GROUP, kafkaOf, lag, openTopic, TOPIC } from './kafka-topic.ts'

const ACKS_OF_ALL = -1
/** A commit when so many were handled, or when nothing came for this long. */
const COMMIT_EVERY = 256
const COMMIT_MS = 50

/** The client alone, with what makes it as safe: all copies, idempotent, offsets committed after the handlers. */
export async function open(place: Place, _variant: string): Promise<Opened> {
  const admin = await openTopic(kafkaOf(place.url))
  const bootstrapBrokers = place.url.split(',')
  const client = { bootstrapBrokers, clientId: 'bench', autocreateTopics: false }
  const producer = new Producer({ ...client, serializers: stringSerializers })
  const consumers: { close(force: boolean): Promise<void> }[] = []
  const message = (parcel: Parcel) => ({
    topic: TOPIC,
    value: JSON.stringify(parcel),
    headers: { id: crypto.randomUUID() },
  })
  const sendMany = async (parcels: readonly Parcel[]): Promise<void> => {
    await producer.send({ messages: parcels.map(message), acks: ACKS_OF_ALL, idempotent: true })
  }
  return {
    send: (parcel) => sendMany([parcel]),
    sendMany,
    async work(run) {
      const consumer = new Consumer({
        ...client,
        groupId: GROUP,
        deserializers: stringDeserializers,
      })
      consumers.push(consumer)
      const stream = await consumer.consume({
        topics: [TOPIC],
        mode: 'committed',
        fallbackMode: 'earliest',
        autocommit: false,
      })
      consumeAll(stream, consumer, run).catch(() => {})
    },
    remaining: () => lag(admin),
    async close() {
      for (const one of consumers) await one.close(true)
      await producer.close()
      await admin.disconnect()
    },
  }
}

type Stream = MessagesStream<string, string, string, string>
type Position = { topic: string; partition: number; offset: bigint; leaderEpoch: number }

/** The next ones are handled while these are committed. */
async function consumeAll(
  stream: Stream,
  consumer: { commit(options: { offsets: Position[] }): Promise<void> },
  run: (parcel: Parcel) => void,
): Promise<void> {
  const handled = new Map<number, Position>()
  let count = 0
  let committed: Promise<void> = Promise.resolve()
  const commit = async (): Promise<void> => {
    await committed
    const offsets = [...handled.values()]
    handled.clear()
    count = 0
    committed = offsets.length === 0 ? Promise.resolve() : consumer.commit({ offsets })
  }
  const idle = setInterval(() => void commit(), COMMIT_MS)
  try {
    for await (const { partition, offset, value } of stream) {
      run(JSON.parse(value))
      handled.set(partition, { topic: TOPIC, partition, offset: offset + 1n, leaderEpoch: -1 })
      count += 1
      if (count >= COMMIT_EVERY) await commit()
    }
  } finally {
    clearInterval(idle)
  }
}
