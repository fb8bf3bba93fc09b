import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { type BackendName, backendUrl } from '../backends.ts'
import { withChannel } from '../transports/rabbitmq-subjects.ts'
import { until } from '../transports/until.ts'
import { appOn, COUNT, noted, type Place, POISON, queueOf } from './poison-app.ts'

/** With the crash that nobody saw. A lease that ends on a machine that is busy for seconds is a crash like any other. */
const subjects: readonly (readonly [
  Place['kind'],
  BackendName,
  deaths: readonly number[],
  sender?: 'another program',
])[] = [
  ['quorum', 'rabbitmq', [4]],
  ['classic', 'rabbitmq', [4]],
  // Its messages have no id that a mark could be found by.
  ['quorum', 'rabbitmq', [4], 'another program'],
  ['classic', 'rabbitmq', [4], 'another program'],
  ['standard', 'sqs elasticmq', [3, 4]],
  ['fifo', 'sqs elasticmq', [3, 4]],
  ['hold', 'kafka', [4]],
  ['park', 'kafka', [4]],
]

for (const [kind, backend, deaths, sender = 'an app'] of subjects) {
  const url = backendUrl(backend)
  if (url === undefined) continue
  test(`${backend} ${kind}: a message of ${sender} that kills its worker each time is dead, and its neighbours get done`, async (t) => {
    const place = await placeOf(t, kind, url)
    const app = await appOn(place)
    t.after(() => app.close({ timeoutMs: 0 }))
    const queue = queueOf(place)
    const payloads = Array.from({ length: COUNT }, (_, n) => ({ n }))
    if (sender === 'an app') await app.sendBatch(queue, payloads)
    else await publishBare(url, queue.name, payloads)
    const dead = async () => (await app.admin.deadLetters.list(queue)).items
    const done = (): ReadonlySet<number> => new Set(noted(place, 'done'))
    let worker = startWorker(t, place)
    await until(
      'the poison to be dead and all others done',
      async () => {
        if (hasEnded(worker)) worker = startWorker(t, place)
        return done().size === COUNT - 1 && (await dead()).length > 0
      },
      150_000,
    )
    worker.kill('SIGKILL')
    const letters = await dead()
    assert.deepEqual(
      letters.map(({ payload, errorClass }) => [payload, errorClass]),
      [[{ n: POISON }, 'crashed']],
    )
    assert.equal(done().has(POISON), false)
    const killed = noted(place, 'killed').length
    assert.ok(deaths.includes(killed), `${killed} processes died`)
    t.diagnostic(
      `${killed} processes died; ${noted(place, 'begun').length} runs for ${COUNT} messages`,
    )
  })
}

/** Without `message-id` and without headers. */
function publishBare(url: string, queue: string, payloads: readonly object[]): Promise<void> {
  return withChannel(url, async (channel) => {
    for (const payload of payloads) {
      channel.sendToQueue(queue, Buffer.from(JSON.stringify(payload)), { persistent: true })
    }
    // What is answered behind them.
    await channel.checkQueue(queue)
  })
}

async function placeOf(t: TestContext, kind: Place['kind'], url: string): Promise<Place> {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-poison-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  const run = `${kind}-${process.pid}-${Date.now().toString(36)}`
  return { kind, url, run, storeFile: join(folder, 'store.db'), recordFile: join(folder, 'record') }
}

function startWorker(t: TestContext, place: Place): ChildProcess {
  const file = new URL('./poison-worker.ts', import.meta.url).pathname
  const args = ['--conditions=millrace-source', file, JSON.stringify(place)]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'inherit'] })
  t.after(async () => {
    if (hasEnded(child)) return
    child.kill('SIGKILL')
    await once(child, 'exit')
  })
  return child
}

function hasEnded({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode !== null || signalCode !== null
}
