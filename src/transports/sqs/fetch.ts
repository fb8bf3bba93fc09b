import type { Message } from '@aws-sdk/client-sqs'
import type { Store } from './store.ts'
import { BATCH_MAX } from './traits.ts'

/** A message, and the moment by our clock from which its lease counts, never later than SQS's own. */
export interface Arrival {
  readonly message: Message
  readonly since: number
}

/** How long the answer of a long poll may have been under way: nobody says when SQS handed the message out. */
const ON_THE_WAY_MAX_MS = 1_000

/** Asks for more than ten messages by several requests. */
export interface Fetcher {
  /** Answers up to `want`, as soon as there is one, or none after `waitS` seconds. */
  fetch(want: number, waitS: number): Promise<readonly Arrival[]>
}

export interface FetcherOptions {
  readonly store: Store
  readonly url: string
  readonly leaseMs: number
}

export function openFetcher({ store, url, leaseMs }: FetcherOptions): Fetcher {
  /** The last answer was as large as it could be, so there is more than one request's worth. */
  let plenty = false

  const ask = async (max: number, waitS: number): Promise<readonly Arrival[]> => {
    const askedAt = store.clock.now()
    const messages = await store.api.receive({
      QueueUrl: url,
      MaxNumberOfMessages: max,
      WaitTimeSeconds: waitS,
      VisibilityTimeout: Math.ceil(leaseMs / 1_000),
      MessageAttributeNames: ['All'],
      MessageSystemAttributeNames: [
        'ApproximateReceiveCount',
        'SentTimestamp',
        'MessageGroupId',
        'SequenceNumber',
      ],
    })
    const onTheWayMs = Math.min(ON_THE_WAY_MAX_MS, leaseMs / 10)
    const since = waitS === 0 ? askedAt : Math.max(askedAt, store.clock.now() - onTheWayMs)
    return messages.map((message) => ({ message, since }))
  }

  /** What some requests brought is kept when others failed; when all failed, so did this. */
  const askMany = async (want: number): Promise<readonly Arrival[]> => {
    const sizes = Array.from({ length: Math.ceil(want / BATCH_MAX) }, (_, at) =>
      Math.min(BATCH_MAX, want - at * BATCH_MAX),
    )
    const answers = await Promise.allSettled(sizes.map((size) => ask(size, 0)))
    const brought = answers.filter((answer) => answer.status === 'fulfilled')
    const [failed] = answers.filter((answer) => answer.status === 'rejected')
    if (brought.length === 0 && failed !== undefined) throw failed.reason
    return brought.flatMap(({ value }) => [...value])
  }

  return {
    async fetch(want, waitS) {
      if (plenty && want > BATCH_MAX) {
        const all = await askMany(want)
        plenty = all.length === want
        if (all.length > 0 || waitS === 0) return all
      }
      const size = Math.min(want, BATCH_MAX)
      const first = await ask(size, waitS)
      plenty = first.length === size
      if (!plenty || want <= BATCH_MAX) return first
      // What has been received must not be lost to the error of a further request.
      const more = await askMany(want - size).catch(() => [])
      return [...first, ...more]
    },
  }
}
