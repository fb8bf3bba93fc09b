import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { jetstreamManager } from '@nats-io/jetstream'
import { connect as dial } from '@nats-io/transport-node'
import { Admin } from '@platformatic/kafka'
import { type Connector, createMillrace, defineQueue, PermanentError } from 'millrace'
import { kafka } from 'millrace/kafka'
import { nats } from 'millrace/nats'
import { memoryStore } from 'millrace/store'
import { z } from 'zod'
import { type BackendName, backendUrl } from '../backends.ts'
import { until } from '../transports/until.ts'

const NAME = `place-gone-${process.pid}`
const OTHERS = 20
/** A try that cannot be concluded comes back with the lease: more would be a loop. */
const TRIES_MAX = 5

interface Subject {
  readonly backend: BackendName
  readonly queue: string
  connector(url: string): Connector
  /** As an operator does who takes it for rubbish. */
  deletePlace(url: string): Promise<void>
}

/** Those that keep dead letters with themselves, apart from the queue. */
const subjects: Readonly<Record<string, Subject>> = {
  nats: {
    backend: 'nats',
    queue: NAME,
    connector: (servers) => nats({ servers, prefix: NAME, ackWaitMs: 2_000 }),
    deletePlace: async (servers) => {
      const connection = await dial({ servers })
      const { streams } = await jetstreamManager(connection)
      assert.equal(await streams.delete(`${NAME}-shelf-${NAME}`), true)
      await connection.close()
    },
  },
  'kafka, held': onKafka('hold'),
  'kafka, parked': onKafka('park'),
}

function onKafka(retry: 'hold' | 'park'): Subject {
  const queue = `${NAME}-${retry}`
  return {
    backend: 'kafka',
    queue,
    connector: (brokers) => kafka({ brokers, partitions: 2, retry }),
    deletePlace: async (brokers) => {
      const admin = new Admin({ clientId: 'test', bootstrapBrokers: brokers.split(',') })
      await admin.deleteTopics({ topics: [`${queue}.dead`] })
      await admin.close()
    },
  }
}

for (const [name, subject] of Object.entries(subjects)) {
  const url = backendUrl(subject.backend)
  if (url === undefined) continue
  test(`${name}: what keeps the dead letters is deleted while an app works: what dies waits until it is there again, and the rest goes on`, (t) =>
    placeGone(t, subject, url))
}

async function openApp(t: TestContext, { connector, queue }: Subject, url: string) {
  const said: string[] = []
  const note = (what: string): void => void said.push(what)
  const steps = defineQueue({
    name: queue,
    owner: 'team',
    payload: z.object({ id: z.string(), fails: z.boolean() }),
    handlerTimeoutMs: 3_000,
  })
  const app = await createMillrace({
    transport: connector(url),
    queues: [steps],
    store: memoryStore(),
    logger: { debug() {}, info() {}, warn: note, error: note },
  })
  t.after(() => app.close({ timeoutMs: 0 }))
  return { app, steps, said }
}

async function placeGone(t: TestContext, subject: Subject, url: string): Promise<void> {
  const { app, steps, said } = await openApp(t, subject, url)
  const seen: string[] = []
  app.work(
    steps,
    async ({ payload: { id, fails } }) => {
      seen.push(id)
      if (fails) throw new PermanentError('no')
    },
    { concurrency: 4 },
  )
  await app.start()
  await app.send(steps, { id: 'first', fails: true })
  const letters = async () => (await app.admin.deadLetters.list(steps)).items.map(({ id }) => id)
  await until('a dead letter', async () => (await letters()).length === 1)

  await subject.deletePlace(url)
  const { id } = await app.send(steps, { id: 'dies', fails: true })
  const isSaid = (text: string): boolean =>
    text.includes(id) && text.includes('what keeps its dead letters is gone, make it again')
  await until('it is said, and what to do', () => said.some(isSaid))
  for (let n = 0; n < OTHERS; n += 1) await app.send(steps, { id: `${n}`, fails: false })
  await until('the others are done', () => new Set(seen).size === OTHERS + 2, 60_000)

  // An app that starts makes what is missing.
  await openApp(t, subject, url)
  await until('it is a dead letter', async () => (await letters()).includes(id), 60_000)
  const tries = seen.filter((one) => one === 'dies').length
  assert.ok(tries <= TRIES_MAX, `${tries} tries`)
  await until('all is well', async () => (await app.health()).ok)
}
