import { Consumer } from 'sqs-consumer'
import type { Opened, Place } from '../contender.ts'
import { BATCH, openQueue } from './sqs-queue.ts'

/** One polls, handles and deletes at a time; its users start several. */
const CONSUMERS = 8

export async function open(place: Place, _variant: string): Promise<Opened> {
  const queue = await openQueue(place)
  const consumers: Consumer[] = []
  return {
    ...queue,
    async work(run) {
      for (let n = 0; n < CONSUMERS; n += 1) {
        const consumer = Consumer.create({
          queueUrl: queue.url,
          sqs: queue.client,
          batchSize: BATCH,
          async handleMessageBatch(messages) {
            for (const { Body } of messages) run(JSON.parse(Body ?? ''))
            return messages
          },
        })
        consumer.on('error', () => {})
        consumer.start()
        consumers.push(consumer)
      }
    },
    async close() {
      for (const consumer of consumers) consumer.stop({ abort: true })
      await queue.close()
    },
  }
}
