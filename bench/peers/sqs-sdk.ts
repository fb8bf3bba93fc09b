import { DeleteMessageBatchCommand, ReceiveMessageCommand } from '@aws-sdk/client-sqs'
import type { Opened, Parcel, Place } from '../contender.ts'
import { BATCH, openQueue, type SqsQueue } from './sqs-queue.ts'

/** Each with ten messages at a time: about as many in flight as ours with 64. */
const LOOPS = 8
const WAIT_S = 20

/** The client alone: long polls, and each batch deleted when it was handled. */
export async function open(place: Place, _variant: string): Promise<Opened> {
  const queue = await openQueue(place)
  return {
    ...queue,
    async work(run) {
      for (let n = 0; n < LOOPS; n += 1) consumeAll(queue, run).catch(() => {})
    },
  }
}

async function consumeAll(
  { client, url: QueueUrl }: SqsQueue,
  run: (parcel: Parcel) => void,
): Promise<void> {
  for (;;) {
    const command = new ReceiveMessageCommand({
      QueueUrl,
      MaxNumberOfMessages: BATCH,
      WaitTimeSeconds: WAIT_S,
    })
    const { Messages = [] } = await client.send(command)
    if (Messages.length === 0) continue
    for (const { Body } of Messages) run(JSON.parse(Body ?? ''))
    const Entries = Messages.map(({ ReceiptHandle }, n) => ({ Id: String(n), ReceiptHandle }))
    await client.send(new DeleteMessageBatchCommand({ QueueUrl, Entries }))
  }
}
