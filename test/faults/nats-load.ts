import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { nats } from 'millrace/nats'
import type { Transport } from '../../src/transport/transport.ts'
import { ack, envelope, type NatsBench, signal } from '../transports/nats-bench.ts'
import { connecting } from '../transports/nats-harness.ts'
import { until } from '../transports/until.ts'

export interface Trouble {
  /** Has the queue `q`, over a connection that is spared. */
  readonly bench: NatsBench
  /** Where producers and workers connect to. */
  readonly servers: string | readonly string[]
  readonly trouble: () => Promise<void>
}

/** Producers and workers while the trouble happens; judged over the connection that was spared. */
export async function throughTrouble(
  t: TestContext,
  { bench, servers, trouble }: Trouble,
): Promise<void> {
  const client = { pingInterval: 300, maxPingOut: 2 }
  const transport = await connecting(
    nats({ servers, client, prefix: bench.prefix, ackWaitMs: 2_000, timeoutMs: 2_000 }),
  )
  t.after(() => transport.close())
  const stop = new AbortController()
  const confirmed = new Set<string>()
  const done = new Map<string, number>()
  const producers = [0, 1, 2].map((n) => produce(transport, `p${n}`, confirmed, stop.signal))
  const workers = [0, 1].map(() => work(transport, done, stop.signal))
  await until('200 done', () => done.size > 200, 60_000)
  await trouble()
  const backAt = Date.now()
  const [sent, worked] = [confirmed.size, done.size]
  await until('sends after the trouble', () => confirmed.size > sent + 50, 60_000)
  const sendsAfterMs = Date.now() - backAt
  await until('work after the trouble', () => done.size > worked + 50, 60_000)
  t.diagnostic(`sends resumed after ${sendsAfterMs} ms, work after ${Date.now() - backAt} ms`)
  stop.abort()
  await Promise.all([...producers, ...workers])
  const missing = (): string[] => [...confirmed].filter((id) => !done.has(id))
  const rest = new AbortController()
  const cleaner = work(bench.transport, done, rest.signal)
  await until('nothing missing', () => missing().length === 0, 60_000).catch(() => {})
  rest.abort()
  await cleaner
  assert.deepEqual(missing(), [])
  const twice = [...done.values()].filter((times) => times > 1).length
  t.diagnostic(`${confirmed.size} confirmed, ${twice} done twice`)
}

async function produce(
  transport: Transport,
  name: string,
  confirmed: Set<string>,
  stop: AbortSignal,
): Promise<void> {
  for (let n = 0; !stop.aborted; ) {
    const batch = Array.from({ length: 5 }, (_, at) => envelope(`${name}-${n + at}`))
    const outcomes = await transport.send('q', batch, { signal }).catch(() => [])
    for (const outcome of outcomes) if (outcome.ok) confirmed.add(outcome.id)
    // The same ids again until each is confirmed, as a relay does.
    if (batch.every(({ id }) => confirmed.has(id))) n += 5
    else await sleep(20)
  }
}

async function work(
  transport: Transport,
  done: Map<string, number>,
  stop: AbortSignal,
): Promise<void> {
  while (!stop.aborted) {
    const subscription = await transport
      .subscribe('q', { group: 'g', leaseMs: 30_000, maxInFlight: 20 })
      .catch(() => undefined)
    if (subscription === undefined) {
      await sleep(50)
      continue
    }
    while (!stop.aborted) {
      const deliveries = await subscription
        .receive({ max: 20, waitMs: 500, signal: stop })
        .catch(() => sleep(50, []))
      const outcomes = await subscription.settle(deliveries.map(ack))
      for (const [at, outcome] of outcomes.entries()) {
        const id = deliveries[at]?.envelope.id ?? ''
        // An ack whose answer was lost may have counted; then the message does not come again.
        if (outcome.ok || outcome.fault.outcome === 'unknown') done.set(id, (done.get(id) ?? 0) + 1)
      }
    }
    await subscription.close()
  }
}
