// Sends 200 messages on three levels, some at a time, to the queue `q` and prints how many were stored:
// `node redis-levels-sender.ts URL PREFIX NAME`.
import { redis } from 'millrace/redis'
import { systemClock } from '../../src/model/clock.ts'
import { silentLogger } from '../../src/model/logger.ts'

const [url = '', prefix = '', name = ''] = process.argv.slice(2)
const { signal } = new AbortController()
const transport = await redis({ url, prefix }).connect({
  signal,
  clock: systemClock(),
  random: Math.random,
  logger: silentLogger,
  migrate: 'auto',
})
const batches = Array.from({ length: 50 }, (_, n) =>
  Array.from({ length: 4 }, (_, m) => ({
    id: `${name}-${n}-${m}`,
    body: new Uint8Array([1]),
    headers: {},
    priority: (n + m) % 3,
  })),
)
const outcomes = await Promise.all(batches.map((batch) => transport.send('q', batch, { signal })))
process.stdout.write(String(outcomes.flat().filter(({ ok }) => ok).length))
await transport.close()
