// Several processes send to one bounded queue as fast as they can, and nobody works: how far beyond `maxDepth` does it get?
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Connector, createMillrace, defineQueue, QueueFullError, silentLogger } from 'millrace'
import { kafka } from 'millrace/kafka'
import { nats } from 'millrace/nats'
import { postgres } from 'millrace/postgres'
import { rabbitmq } from 'millrace/rabbitmq'
import { redis } from 'millrace/redis'
import { sqlite } from 'millrace/sqlite'
import { sqs } from 'millrace/sqs'
import { memoryStore } from 'millrace/store'
import { z } from 'zod'
import { nowMs } from './contender.ts'
import { startServers } from './servers.ts'
import { SQS_ACCOUNT } from './sqs-account.ts'

const CONNECTORS = {
  sqlite: (file: string) => sqlite({ file }),
  postgres: (url: string) => postgres({ url, schema: 'overshoot' }),
  redis: (url: string) => redis({ url }),
  nats: (servers: string) => nats({ servers }),
  rabbitmq: (url: string) => rabbitmq({ url }),
  kafka: (brokers: string) => kafka({ brokers: brokers.split(','), retry: 'park' }),
  sqs: (endpoint: string) => sqs({ ...SQS_ACCOUNT, endpoint }),
  'sqs fifo': (endpoint: string) => sqs({ ...SQS_ACCOUNT, endpoint, kind: 'fifo' }),
} as const satisfies Readonly<Record<string, (place: string) => Connector>>

export type OvershootBackend = keyof typeof CONNECTORS

export interface OvershootPlan {
  readonly backend: OvershootBackend
  /** Address, or file. */
  readonly place: string
  readonly maxDepth: number
  readonly senders: number
}

export interface Overshoot {
  readonly accepted: number
  /** Of all senders together, until the first refusal. */
  readonly perSecond: number
}

interface Sent {
  readonly accepted: number
  readonly untilFullMs: number
}

/** Sends under way in each process. */
const AT_ONCE = 16
/** A sample is a second old at most, and a full queue is counted again after 200 ms: by then all know. */
const QUIET_MS = 3_000

export async function overshoot(plan: OvershootPlan): Promise<Overshoot> {
  const children = Array.from({ length: plan.senders }, () =>
    fork(import.meta.filename, [JSON.stringify(plan)], {
      execArgv: ['--conditions=millrace-source'],
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    }),
  )
  try {
    // One after the other: the first one makes the queue.
    for (const child of children) await told(child)
    const sent = await Promise.all(children.map(sentBy))
    const accepted = sent.reduce((sum, one) => sum + one.accepted, 0)
    const untilFullMs = Math.max(...sent.map((one) => one.untilFullMs))
    return { accepted, perSecond: Math.round((1_000 * plan.maxDepth) / untilFullMs) }
  } finally {
    for (const child of children) child.kill()
  }
}

async function sentBy(child: ChildProcess): Promise<Sent> {
  child.send('go')
  return (await told(child)) as Sent
}

/** What the child says next. */
async function told(child: ChildProcess): Promise<unknown> {
  const died = once(child, 'exit').then(() => {
    throw new Error('a sender ended')
  })
  const [message] = await Promise.race([once(child, 'message'), died])
  died.catch(() => undefined)
  return message
}

async function send({ backend, place, maxDepth }: OvershootPlan): Promise<void> {
  const queue = defineQueue({
    name: `overshoot-${backend.replace(' ', '-')}`,
    owner: 'bench',
    payload: z.object({ n: z.number() }),
    capacity: { maxDepth },
  })
  const parts = { transport: CONNECTORS[backend](place), store: memoryStore() }
  const app = await createMillrace({ ...parts, queues: [queue], logger: silentLogger })
  process.send?.('ready')
  await once(process, 'message')
  const startedAt = nowMs()
  let [accepted, fullAt, acceptedAt] = [0, Number.NaN, startedAt]
  const caller = async (): Promise<void> => {
    while (Number.isNaN(fullAt) || nowMs() - acceptedAt < QUIET_MS) {
      try {
        await app.send(queue, { n: accepted })
        accepted += 1
        acceptedAt = nowMs()
      } catch (error) {
        if (!(error instanceof QueueFullError)) throw error
        if (Number.isNaN(fullAt)) fullAt = nowMs()
        await sleep(50)
      }
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, caller))
  process.send?.({ accepted, untilFullMs: fullAt - startedAt } satisfies Sent)
  await app.close()
  process.disconnect()
}

async function measureAll(maxDepth: number, senders: number): Promise<void> {
  const { servers, missing, stop } = await startServers(
    new Set(['postgres', 'redis', 'nats', 'rabbitmq', 'kafka', 'sqs']),
  )
  try {
    for (const [backend, why] of missing) console.log(`${backend}: not there, ${why}`)
    for (const backend of Object.keys(CONNECTORS) as OvershootBackend[]) {
      const server = backend === 'sqs fifo' ? 'sqs' : backend
      // SQLite counts exactly; a test says so.
      const place = server === 'sqlite' ? undefined : servers[server]
      if (place === undefined) continue
      const { accepted, perSecond } = await overshoot({ backend, place, maxDepth, senders })
      const beyond = accepted - maxDepth
      console.log(`${backend}: ${accepted} of ${maxDepth}, ${beyond} beyond, at ${perSecond}/s`)
    }
  } finally {
    await stop()
  }
}

if (import.meta.main) {
  const [first = '5000', senders = '3'] = process.argv.slice(2)
  if (process.send) await send(JSON.parse(first) as OvershootPlan)
  else await measureAll(Number(first), Number(senders))
}
