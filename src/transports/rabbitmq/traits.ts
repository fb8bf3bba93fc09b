import type { Traits } from '../../transport/traits.ts'
import { DELAY_MAX_MS } from './ladder.ts'
import type { Resolved } from './options.ts'
import type { Server } from './server.ts'

const MIB = 1_048_576
/** The default limit of 4.x; 3.x takes 128 MiB by default. */
const BODY_MAX_BYTES = 16 * MIB

export function rabbitTraits({ queueType, delays }: Resolved, server: Server): Traits {
  return {
    settles: 'each',
    // AMQP does not answer acks: what we ask for behind them tells that the channel has taken them, no more.
    acksMayBeUndone: true,
    claim: { kind: 'session' },
    release: 'immediate',
    uncountedRelease: true,
    counts: queueType === 'quorum' ? 'deliveries' : 'redelivered',
    keepsHistory: false,
    countsCrashes: false,
    order: 'none',
    delay: delays && server.hasQuorumTtl ? { maxMs: DELAY_MAX_MS } : 'none',
    dedupe: 'none',
    remembersIds: false,
    deadLetters: 'none',
    priorities: 1,
    capacity: 'sampled',
    atomicBatch: false,
    clock: 'caller',
    durability: 'disk',
    limits: {
      bodyBytes: BODY_MAX_BYTES,
      sendBatch: 1_000,
      receiveBatch: 1_000,
      settleBatch: 1_000,
    },
  }
}

/**
 * Of queues with lanes: a lane is assigned to one consumer, a failed message waits in its place, and a delayed one would leave
 * its order.
 */
export function laneTraits(options: Resolved, server: Server): Traits {
  const traits = rabbitTraits(options, server)
  return {
    ...traits,
    claim: { kind: 'assignment' },
    release: 'delayed',
    order: 'perKey',
    delay: 'none',
    // Each lane has a window of its own, so no more may be there at once, whatever is waiting.
    limits: { ...traits.limits, receiveBatch: 100 },
  }
}
