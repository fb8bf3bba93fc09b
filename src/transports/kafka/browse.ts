import type { Browse } from '../../transport/transport.ts'
import { type Cluster, topicOf } from './client.ts'
import { coordinatorOf } from './coordinator.ts'
import { committedStarts, offsetsAt } from './offsets.ts'
import { placeOf } from './options.ts'

/** Kafka tells how far a group is behind, and nothing of single messages. */
export function browse(cluster: Cluster): Browse {
  const { asking, options } = cluster
  return {
    gauge: async (queue) => {
      const place = placeOf(options, queue)
      const topic = await topicOf(cluster, asking, queue, place.topic)
      const partitions = topic.partitions.map((_, at) => at)
      const coordinator = coordinatorOf(cluster, asking, place.group)
      const [committed, first, next] = await Promise.all([
        committedStarts(cluster, coordinator, place, partitions),
        offsetsAt(cluster, asking, place.topic, topic, partitions, options.startFrom),
        offsetsAt(cluster, asking, place.topic, topic, partitions, 'latest'),
      ])
      const behind = partitions.map((at) => {
        const from = committed.get(at)?.position ?? first.get(at) ?? 0n
        return Math.max(0, Number((next.get(at) ?? 0n) - from))
      })
      return {
        depth: behind.reduce((sum, one) => sum + one, 0),
        scheduled: undefined,
        inFlight: undefined,
        dead: undefined,
        ageMs: undefined,
        paused: false,
      }
    },
  }
}
