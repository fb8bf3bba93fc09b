import { type Consumer, Partitioners } from 'kafkajs'
import type { Opened, Parcel, Place } from '../contender.ts'
import { GROUP, kafkaOf, lag, openTopic, TOPIC } from './kafka-topic.ts'

const ACKS_OF_ALL = -1

export async function open(place: Place, _variant: string): Promise<Opened> {
  const kafka = kafkaOf(place.url)
  const admin = await openTopic(kafka)
  const createPartitioner = Partitioners.DefaultPartitioner
  const producer = kafka.producer({ idempotent: true, createPartitioner })
  await producer.connect()
  const consumers: Consumer[] = []
  const message = (parcel: Parcel) => ({
    value: JSON.stringify(parcel),
    headers: { id: crypto.randomUUID() },
  })
  const sendMany = async (parcels: readonly Parcel[]): Promise<void> => {
    await producer.send({ topic: TOPIC, acks: ACKS_OF_ALL, messages: parcels.map(message) })
  }
  return {
    send: (parcel) => sendMany([parcel]),
    sendMany,
    async work(run) {
      const consumer = kafka.consumer({ groupId: GROUP })
      consumers.push(consumer)
      await consumer.connect()
      await consumer.subscribe({ topic: TOPIC, fromBeginning: true })
      await consumer.run({
        eachMessage: async ({ message: { value } }) => run(JSON.parse(String(value))),
      })
    },
    remaining: () => lag(admin),
    async close() {
      for (const one of [...consumers, producer, admin]) await one.disconnect()
    },
  }
}
