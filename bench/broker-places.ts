import { setTimeout as sleep } from 'node:timers/promises'
import {
  DeleteQueueCommand,
  ListQueuesCommand,
  PurgeQueueCommand,
  SQSClient,
} from '@aws-sdk/client-sqs'
import { jetstreamManager } from '@nats-io/jetstream'
import { connect as connectToNats } from '@nats-io/transport-node'
import { Admin } from '@platformatic/kafka'
import { connect as connectToRabbitmq } from 'amqplib'
import { SQS_ACCOUNT } from './sqs-account.ts'

/** What every contender calls its queue. */
const NAME = 'parcels'

/** Each leaves its broker empty for the next contender, who may want a queue of the same name made otherwise. */
type Emptied = <T>(url: string, use: () => Promise<T>) => Promise<T>

export const withEmptyNats: Emptied = (url, use) =>
  leaving(use, async () => {
    const connection = await connectToNats({ servers: url })
    const { streams } = await jetstreamManager(connection)
    for await (const name of streams.names()) await streams.delete(name)
    await connection.close()
  })

export const withEmptyRabbitmq: Emptied = (url, use) =>
  leaving(use, async () => {
    const connection = await connectToRabbitmq(url)
    const channel = await connection.createChannel()
    await channel.deleteQueue(NAME)
    await connection.close()
  })

export const withEmptyKafka: Emptied = (brokers, use) =>
  leaving(use, async () => {
    const bootstrapBrokers = brokers.split(',')
    const admin = new Admin({ bootstrapBrokers, clientId: 'bench-places', retries: 3 })
    try {
      const groups = [...(await admin.listGroups()).keys()]
      if (groups.length > 0) await admin.deleteGroups({ groups })
      const topics = (await admin.listTopics()).filter((name) => name === NAME)
      if (topics.length > 0) await admin.deleteTopics({ topics })
      while ((await admin.listTopics()).includes(NAME)) await sleep(20)
    } finally {
      await admin.close()
    }
  })

export const withEmptySqs: Emptied = (endpoint, use) =>
  leaving(use, async () => {
    const client = new SQSClient({ ...SQS_ACCOUNT, endpoint, useQueueUrlAsEndpoint: false })
    const { QueueUrls = [] } = await client.send(new ListQueuesCommand({}))
    for (const QueueUrl of QueueUrls) {
      await client.send(new PurgeQueueCommand({ QueueUrl }))
      await client.send(new DeleteQueueCommand({ QueueUrl }))
    }
    client.destroy()
  })

async function leaving<T>(use: () => Promise<T>, empty: () => Promise<void>): Promise<T> {
  try {
    return await use()
  } finally {
    await empty()
  }
}
