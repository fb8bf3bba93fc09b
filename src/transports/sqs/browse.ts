import type { Browse } from '../../transport/transport.ts'
import type { Store } from './store.ts'

/**
 * SQS counts approximately, and by its own states: a message that was released with a delay counts as in flight until it is due.
 * It knows no message by its id.
 */
export function browse({ api, places }: Store): Browse {
  return {
    async gauge(queue) {
      const { url } = await places.of(queue)
      const numbers = await api.attributes({ QueueUrl: url, AttributeNames: [...NUMBERS] })
      const number = (name: (typeof NUMBERS)[number]): number | undefined => {
        const text = numbers[name]
        return text === undefined ? undefined : Number(text)
      }
      return {
        depth: number('ApproximateNumberOfMessages'),
        scheduled: number('ApproximateNumberOfMessagesDelayed'),
        inFlight: number('ApproximateNumberOfMessagesNotVisible'),
        dead: undefined,
        ageMs: undefined,
        paused: false,
      }
    },
  }
}

const NUMBERS = [
  'ApproximateNumberOfMessages',
  'ApproximateNumberOfMessagesDelayed',
  'ApproximateNumberOfMessagesNotVisible',
] as const
