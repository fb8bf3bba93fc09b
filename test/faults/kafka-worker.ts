import type { Delivery } from '../../src/model/delivery.ts'
import { connected, signal, subscribed } from './kafka-connect.ts'

/**
 * A worker in a process of its own: says what it takes, and acks the first half of each batch. When it has 40 it takes no
 * more, says so, and stays. Stopped and woken again, it acks at once what it holds.
 */
const [, , brokers = '', prefix = ''] = process.argv
const { transport } = await connected(brokers, { prefix })
const subscription = await subscribed(transport)
process.stdout.write('ready\n')
const held: Delivery[] = []
let taken = 0
while (taken < 40) {
  const batch = await subscription.receive({ max: 10, waitMs: 1_000, signal })
  for (const { envelope } of batch) process.stdout.write(`took ${envelope.id}\n`)
  taken += batch.length
  const half = batch.slice(0, 5)
  held.push(...batch.slice(5))
  await ack(half)
}
process.stdout.write('holding all\n')
process.on('SIGCONT', () => void ack(held))

async function ack(some: readonly Delivery[]): Promise<void> {
  const outcomes = await subscription.settle(some.map((delivery) => ({ as: 'acked', delivery })))
  for (const [at, outcome] of outcomes.entries()) {
    const id = some[at]?.envelope.id
    process.stdout.write(outcome.ok ? `acked ${id}\n` : `${outcome.fault.code} ${id}\n`)
  }
}
