import type { Traits } from '../../transport/traits.ts'
import type { ServerAbilities } from './server.ts'
import type { QueueSettings } from './store.ts'

const HOUR_MS = 3_600_000

export const DELAY_MAX_MS: number = 366 * 24 * HOUR_MS
export const LEASE_MAX_MS: number = 24 * HOUR_MS
export const RECEIVE_MAX = 1_000
/** The server takes headers up to 64 KiB, which count towards its largest payload. */
export const HEADERS_MAX: number = 64 * 1024
/** What a sender may use of it: a dead letter needs the rest for its reason and its attempts. */
export const SENT_HEADERS_MAX: number = 56 * 1024

export function natsTraits(
  { maxPayload }: ServerAbilities,
  { replicas, schedules, lanes }: Pick<QueueSettings, 'replicas' | 'schedules' | 'lanes'>,
): Traits {
  return {
    settles: 'each',
    remembersIds: true,
    claim: { kind: 'lease', maxMs: LEASE_MAX_MS },
    release: 'delayed',
    uncountedRelease: true,
    counts: 'deliveries',
    keepsHistory: true,
    countsCrashes: true,
    order: lanes === undefined ? 'none' : 'perKey',
    // A schedule stores the message anew when it is due, behind what was sent meanwhile.
    ...(lanes !== undefined && schedules ? { delayLeavesOrder: true } : {}),
    delay: schedules ? { maxMs: DELAY_MAX_MS } : 'none',
    dedupe: 'none',
    deadLetters: 'native',
    priorities: 1,
    capacity: 'sampled',
    atomicBatch: false,
    clock: 'server',
    // A server alone writes to the disk now and then (`sync_interval`, 2 min), and does not tell a client how often.
    durability: replicas > 1 ? 'replicated' : 'process',
    limits: {
      bodyBytes: maxPayload - HEADERS_MAX,
      sendBatch: 10_000,
      receiveBatch: RECEIVE_MAX,
      settleBatch: 10_000,
    },
  }
}
