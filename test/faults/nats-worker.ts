import { nats } from 'millrace/nats'
import { systemClock } from '../../src/model/clock.ts'
import { silentLogger } from '../../src/model/logger.ts'

/** A worker in a process of its own: takes what it is given, says so, acks half of it, and never ends by itself. */
const [, , servers = '', prefix = ''] = process.argv
const { signal } = new AbortController()
const transport = await nats({ servers, prefix, ackWaitMs: 1_000 }).connect({
  signal,
  clock: systemClock(),
  random: Math.random,
  logger: silentLogger,
  migrate: 'auto',
})
const subscription = await transport.subscribe('q', {
  group: 'g',
  leaseMs: 60_000,
  maxInFlight: 20,
})
for (;;) {
  const deliveries = await subscription.receive({ max: 10, waitMs: 1_000, signal })
  for (const { envelope } of deliveries) process.stdout.write(`took ${envelope.id}\n`)
  const half = deliveries.slice(0, 5).map((delivery) => ({ as: 'acked', delivery }) as const)
  const outcomes = await subscription.settle(half)
  for (const [at, outcome] of outcomes.entries()) {
    if (outcome.ok) process.stdout.write(`acked ${half[at]?.delivery.envelope.id}\n`)
  }
}
