import { type Admin, Kafka, logLevel } from 'kafkajs'

export const TOPIC = 'parcels'
export const GROUP = 'workers'
/** As many as ours makes. */
const PARTITIONS = 12

export function kafkaOf(brokers: string): Kafka {
  return new Kafka({ brokers: brokers.split(','), logLevel: logLevel.NOTHING })
}

/** Makes the topic, and says how far the group is behind. */
export async function openTopic(kafka: Kafka): Promise<Admin> {
  const admin = kafka.admin()
  await admin.connect()
  await admin.createTopics({ topics: [{ topic: TOPIC, numPartitions: PARTITIONS }] })
  return admin
}

export async function lag(admin: Admin): Promise<number> {
  const [ends, [group]] = await Promise.all([
    admin.fetchTopicOffsets(TOPIC),
    admin.fetchOffsets({ groupId: GROUP, topics: [TOPIC] }),
  ])
  const committed = new Map(
    group?.partitions.map(({ partition, offset }) => [partition, Math.max(0, Number(offset))]),
  )
  return ends.reduce(
    (sum, { partition, offset }) => sum + Number(offset) - (committed.get(partition) ?? 0),
    0,
  )
}
