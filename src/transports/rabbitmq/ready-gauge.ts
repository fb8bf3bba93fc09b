import { unknownQueueError } from '../../transport/own-errors.ts'
import type { Gauge } from '../../transport/transport.ts'
import type { Broker } from './broker.ts'
import { throwAway } from './channel.ts'
import { rabbitFault } from './fault.ts'

/** What is ready in all of these queues of the broker together; it says nothing else. @param name as the caller knows it */
export async function readyGauge(
  broker: Broker,
  name: string,
  queues: readonly string[],
): Promise<Gauge> {
  try {
    const counts = await throwAway(broker, (channel) =>
      Promise.all(queues.map((queue) => channel.checkQueue(queue))),
    )
    return {
      depth: counts.reduce((sum, { messageCount }) => sum + messageCount, 0),
      scheduled: undefined,
      inFlight: undefined,
      dead: undefined,
      ageMs: undefined,
      paused: false,
    }
  } catch (error) {
    throw rabbitFault(error).code === 'notFound' ? unknownQueueError(name) : error
  }
}
