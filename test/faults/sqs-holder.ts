// A worker on SQS that is killed: receives, says what it began, acks, says what was acked.
//   node sqs-holder.ts URL KIND QUEUE LEASE_MS
import { systemClock } from '../../src/model/clock.ts'
import { silentLogger } from '../../src/model/logger.ts'
import { sqs } from '../../src/transports/sqs/index.ts'

const [endpoint = '', kind = '', queue = '', leaseMs = ''] = process.argv.slice(2)
const { signal } = new AbortController()

const transport = await sqs({
  endpoint,
  region: 'us-east-1',
  credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
  kind: kind === 'fifo' ? 'fifo' : 'standard',
}).connect({
  signal,
  clock: systemClock(),
  random: Math.random,
  logger: silentLogger,
  migrate: 'auto',
})
const from = await transport.subscribe(queue, {
  group: 'g',
  leaseMs: Number(leaseMs),
  maxInFlight: 50,
})
for (;;) {
  for (const delivery of await from.receive({ max: 10, waitMs: 5_000, signal })) {
    const { id } = delivery.envelope
    process.stdout.write(`begun ${id}\n`)
    const [outcome] = await from.settle([{ as: 'acked', delivery }])
    if (outcome?.ok) process.stdout.write(`acked ${id}\n`)
  }
}
