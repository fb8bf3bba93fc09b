import assert from 'node:assert/strict'
import fc from 'fast-check'
import type { Harness } from 'millrace/conformance'
import { pause, systemClock } from '../../src/model/clock.ts'
import type { Transport } from '../../src/transport/transport.ts'
import { type Command, commands, LEASE_MS } from './queue-commands.ts'
import { newModel, type OnDead, type Real } from './queue-model.ts'

export interface ModelRun {
  readonly numRuns: number
  readonly maxCommands: number
  /** Default: a new one each time, printed when it fails. */
  readonly seed?: number
}

const YEAR_MS = 31_557_600_000

/** Postgres looks for leases that ran out at a receive from any queue, at most once within this time; Redis at one from this queue. */
const SWEEP_MS = 1_500

/**
 * The model and the transport agree after every command of every run; fast-check shrinks what does
 * not.
 */
export async function modelHolds(harness: Harness, run: ModelRun): Promise<void> {
  const { maxCommands, ...options } = run
  const near = await harness.connect()
  const far = await harness.connect()
  const movable = harness.time !== undefined
  const { priorities } = near.traits
  const { signal } = new AbortController()
  try {
    await fc.assert(
      fc.asyncProperty(
        commands({ movable, maxCommands, priorities }),
        fc.constantFrom<OnDead>('continue', 'halt-key'),
        async (chosen: Iterable<Command>, onDead) => {
          // Longer than any run waits: the model knows no ages.
          const queue = await harness.freshQueue({ onDead, ageingMs: YEAR_MS })
          const subscribeOptions = { group: 'model', leaseMs: LEASE_MS, maxInFlight: 100 }
          const subscription = await near.subscribe(queue, subscribeOptions)
          const real: Real = {
            near,
            far,
            queue,
            subscription,
            held: new Map(),
            zombies: [],
            leaseMs: harness.leaseMs,
            passes: async (ms) => {
              if (harness.time) return await harness.time.advance(ms)
              await pause(systemClock(), ms + SWEEP_MS)
              await sweep(far, queue, signal)
            },
            signal,
          }
          try {
            await fc.asyncModelRun(() => ({ model: newModel(onDead), real }), chosen)
          } finally {
            await subscription.close()
          }
        },
      ),
      { endOnFailure: false, verbose: 1, ...options },
    )
  } finally {
    await near.close()
    await far.close()
  }
}

/** A paused queue takes back what vanished holders had, and hands nothing out. */
async function sweep(transport: Transport, queue: string, signal: AbortSignal): Promise<void> {
  const { browse } = transport
  const isPaused = (await browse?.gauge(queue))?.paused
  await browse?.setPaused?.(queue, true)
  const options = { group: 'sweeper', leaseMs: LEASE_MS, maxInFlight: 1 }
  const sweeper = await transport.subscribe(queue, options)
  assert.deepEqual(await sweeper.receive({ max: 1, waitMs: 0, signal }), [])
  await sweeper.close()
  if (isPaused === false) await browse?.setPaused?.(queue, false)
}
