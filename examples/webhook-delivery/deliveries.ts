import { defineQueue } from 'millrace'
import { httpTarget } from 'millrace/http'
import { z } from 'zod'

/** One event that one receiver must hear of. */
const delivery = z.object({
  eventId: z.string().min(1).max(200),
  url: z.url({ protocol: /^https?$/ }),
  body: z.unknown().optional(),
})

export type Delivery = z.infer<typeof delivery>

export const deliveries = defineQueue({
  name: 'webhook-deliveries',
  owner: 'team-integrations', // who watches the dead letters
  payload: delivery,
  // The receiver gets it as the Idempotency-Key header: the same on every retry and redrive.
  idempotencyKey: ({ eventId }) => eventId,
  handlerTimeoutMs: 15_000,
  // Small, so that a demo reaches the dead letters within seconds. The defaults are 8 attempts from 1 s to 1 h.
  retry: { attempts: 4, baseMs: 500, maxMs: 5_000 },
})

/** Status codes decide: 2xx done, 429 waits as told, 408 and 5xx are retried, other 4xx are dead at once. */
export const deliver = httpTarget<Delivery>((message) => message.payload.url, {
  body: ({ payload }) => payload.body ?? { eventId: payload.eventId },
  timeoutMs: 14_000,
  // Private addresses are refused unless named. Our own receiver listens on this one; production needs none.
  allowPrivateAddresses: ['127.0.0.1'],
})
