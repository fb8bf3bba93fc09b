import assert from 'node:assert/strict'
import { hasCode } from 'millrace'
import type { Subscription, Transport } from '../../src/transport/transport.ts'
import { envelope, never, subscribe } from '../transports/rabbitmq-subjects.ts'
import { until } from '../transports/until.ts'

/** Producers and workers that go on whatever happens, and what they were told. */
export interface Load {
  /** Ids that the broker confirmed. */
  readonly confirmed: ReadonlySet<string>
  /** Ids that a worker had in hand. */
  readonly done: ReadonlySet<string>
  /** Codes of the faults that sends were answered. */
  readonly refused: ReadonlySet<string>
  /** Deliveries beyond the first. */
  readonly again: () => number
  /** Ends the producers, then waits until all that was confirmed is done: none may be lost. */
  finish(): Promise<void>
}

const BATCH = 10

export async function openLoad(transport: Transport, queue: string): Promise<Load> {
  const confirmed = new Set<string>()
  const done = new Set<string>()
  const refused = new Set<string>()
  const producing = new AbortController()
  const working = new AbortController()
  let deliveries = 0

  const produce = async (): Promise<void> => {
    while (!producing.signal.aborted) {
      const batch = Array.from({ length: BATCH }, () => envelope())
      const sent = await transport
        .send(queue, batch, { signal: never })
        .catch((error: unknown) => void endIfClosed(error, producing))
      for (const one of sent ?? []) {
        if (one.ok) confirmed.add(one.id)
        else refused.add(one.fault.code)
      }
      // Slow enough for a machine that other tests share; a refusal must not turn into a busy loop.
      await new Promise((resolve) => setTimeout(resolve, sent?.[0]?.ok ? 2 : 20))
    }
  }
  const work = async (from: Subscription): Promise<void> => {
    while (!working.signal.aborted) {
      const options = { max: BATCH, waitMs: 200, signal: working.signal }
      const batch = await from.receive(options).catch((error: unknown) => {
        endIfClosed(error, working)
        return []
      })
      deliveries += batch.length
      // Its effect has happened. An ack that went down with its channel may have counted or not.
      for (const delivery of batch) done.add(delivery.envelope.id)
      await from.settle(batch.map((delivery) => ({ as: 'acked', delivery }) as const))
    }
  }
  const from = await subscribe(transport, queue, 50)
  const producers = [produce(), produce()]
  const workers = [work(from)]
  return {
    confirmed,
    done,
    refused,
    again: () => deliveries - done.size,
    async finish() {
      producing.abort()
      await Promise.all(producers)
      await until(
        'all that was confirmed',
        () => [...confirmed].every((id) => done.has(id)),
        60_000,
      )
      working.abort()
      await Promise.all(workers)
      assert.deepEqual(
        [...confirmed].filter((id) => !done.has(id)),
        [],
      )
    },
  }
}

/** A test that failed closes its transport; the load must not keep its process alive. */
function endIfClosed(error: unknown, loop: AbortController): void {
  if (hasCode(error, 'MILLRACE_CLOSED')) loop.abort()
}
