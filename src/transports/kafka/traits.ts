import type { Traits } from '../../transport/traits.ts'

/** Left of a record batch for headers, keys and what frames them; the history of attempts has up to 16 kB. */
const HEADROOM = 48_588

/** What a topic and a consumer group do by themselves: they keep messages in order and commit a position for each partition. */
export function kafkaTraits(maxMessageBytes: number, isReplicated: boolean): Traits {
  return {
    settles: 'upTo',
    claim: { kind: 'assignment' },
    release: 'none',
    uncountedRelease: false,
    counts: 'none',
    keepsHistory: false,
    countsCrashes: false,
    order: 'perKey',
    delay: 'none',
    remembersIds: false,
    dedupe: 'none',
    deadLetters: 'none',
    priorities: 1,
    capacity: 'sampled',
    atomicBatch: false,
    clock: 'caller',
    durability: isReplicated ? 'replicated' : 'process',
    limits: {
      bodyBytes: maxMessageBytes - HEADROOM,
      sendBatch: 1_000,
      receiveBatch: 1_000,
      settleBatch: 10_000,
    },
  }
}
