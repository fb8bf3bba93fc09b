import {
  CreateQueueCommand,
  GetQueueAttributesCommand,
  SendMessageBatchCommand,
  SendMessageCommand,
  SQSClient,
} from '@aws-sdk/client-sqs'
import type { Opened, Parcel, Place } from '../contender.ts'
import { SQS_ACCOUNT } from '../sqs-account.ts'

/** The most that SQS takes and gives at once. */
export const BATCH = 10
const COUNTS = ['ApproximateNumberOfMessages', 'ApproximateNumberOfMessagesNotVisible'] as const

export interface SqsQueue extends Omit<Opened, 'work'> {
  readonly client: SQSClient
  readonly url: string
}

/** The SDK alone: what both contenders send with. */
export async function openQueue(place: Place): Promise<SqsQueue> {
  const client = new SQSClient({
    ...SQS_ACCOUNT,
    endpoint: place.url,
    useQueueUrlAsEndpoint: false,
    requestHandler: { httpAgent: { maxSockets: 256, keepAlive: true } },
  })
  const { QueueUrl } = await client.send(new CreateQueueCommand({ QueueName: 'parcels' }))
  const url = String(QueueUrl)
  const ten = async (parcels: readonly Parcel[]): Promise<void> => {
    const Entries = parcels.map((parcel, n) => ({
      Id: String(n),
      MessageBody: JSON.stringify(parcel),
    }))
    const { Failed } = await client.send(new SendMessageBatchCommand({ QueueUrl: url, Entries }))
    if (Failed !== undefined && Failed.length > 0) throw new Error(String(Failed[0]?.Message))
  }
  return {
    client,
    url,
    async send(parcel) {
      const MessageBody = JSON.stringify(parcel)
      await client.send(new SendMessageCommand({ QueueUrl: url, MessageBody }))
    },
    async sendMany(parcels) {
      const tens = Array.from({ length: Math.ceil(parcels.length / BATCH) }, (_, n) =>
        parcels.slice(n * BATCH, (n + 1) * BATCH),
      )
      await Promise.all(tens.map(ten))
    },
    async remaining() {
      const command = new GetQueueAttributesCommand({ QueueUrl: url, AttributeNames: [...COUNTS] })
      const { Attributes } = await client.send(command)
      return COUNTS.reduce((sum, name) => sum + Number(Attributes?.[name]), 0)
    },
    async close() {
      client.destroy()
    },
  }
}
