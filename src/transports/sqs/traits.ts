import type { Traits } from '../../transport/traits.ts'

/** All of a message: body, attributes, their names and types (since August 2025; 256 KiB before). */
export const MESSAGE_MAX_BYTES = 1_048_576
/** A whole batch request, too. */
export const BATCH_MAX_BYTES: number = MESSAGE_MAX_BYTES
/** Items of one request, whatever the action. */
export const BATCH_MAX = 10
export const DELAY_MAX_MS = 900_000
/** A message may stay invisible this long after it was received, renewals included. */
export const HELD_MAX_MS = 43_200_000
export const LONG_POLL_MAX_S = 20

/** Left free for what goes into attributes: our headers, the sender's, and what a copy went through (16 KiB). */
const HEADERS_BYTES = 32_768

const common = {
  settles: 'each',
  claim: { kind: 'lease', maxMs: HELD_MAX_MS },
  release: 'delayed',
  uncountedRelease: true,
  counts: 'deliveries',
  keepsHistory: false,
  countsCrashes: false,
  remembersIds: false,
  dedupe: 'none',
  deadLetters: 'none',
  priorities: 1,
  capacity: 'sampled',
  atomicBatch: false,
  clock: 'server',
  durability: 'replicated',
  limits: {
    bodyBytes: MESSAGE_MAX_BYTES - HEADERS_BYTES,
    // Requests take ten; these are what the transport splits, so that many are under way at once.
    sendBatch: 500,
    receiveBatch: 100,
    settleBatch: 500,
  },
} as const

export const standardTraits: Traits = {
  ...common,
  order: 'none',
  delay: { maxMs: DELAY_MAX_MS },
}

/** A FIFO queue takes a delay for all of its messages only, never for one. */
export const fifoTraits: Traits = { ...common, order: 'perKey', delay: 'none' }
