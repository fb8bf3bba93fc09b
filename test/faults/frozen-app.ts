import { setImmediate } from 'node:timers/promises'
import { createMillrace, defineQueue } from 'millrace'
import { memoryStore } from 'millrace/store'
import { z } from 'zod'
import { type FrozenName, frozenSubjects } from './frozen-subjects.ts'

/**
 * An app in a process of its own, whose server it stops: at work, or so many turns of the event loop after the start began.
 * Then it closes, says how long that took, and has to end by itself.
 */
const [, , subject = '', address = '', pid = '', queue = '', turns = 'at work'] = process.argv
const { bodyBytes, connector } = frozenSubjects[nameOf(subject)]
const orders = defineQueue({
  name: queue,
  owner: 'team-a',
  payload: z.object({ text: z.string() }),
})
const app = await createMillrace({
  transport: connector(address),
  queues: [orders],
  store: memoryStore(),
  logger: { debug() {}, info() {}, warn() {}, error() {} },
})
const inHand = Promise.withResolvers<void>()
app.work(orders, async (_, { signal }) => {
  inHand.resolve()
  await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
})
await app.send(orders, { text: 'first' })
const starting = app.start()
const started = starting.catch(() => {})
if (turns === 'at work') {
  await starting
  await inHand.promise
} else for (let n = 0; n < Number(turns); n++) await setImmediate()
process.kill(Number(pid), 'SIGSTOP')
const text = 'x'.repeat(bodyBytes)
const sends = Array.from({ length: 20 }, () => app.send(orders, { text }))
const sent = Promise.allSettled(sends)
const startedAt = performance.now()
await app.close({ timeoutMs: 500 })
process.stdout.write(`closed ${Math.round(performance.now() - startedAt)}\n`)
await Promise.all([app.close(), started, sent])
process.stdout.write('settled\n')

function nameOf(text: string): FrozenName {
  if (text === 'rabbitmq' || text === 'kafka' || text === 'sqs') return text
  throw new Error(`no subject is called ${text}`)
}
