import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { sqs } from 'millrace/sqs'
import { seededRandom } from 'millrace/testing'
import type { Envelope } from '../../src/model/envelope.ts'
import type { Transport } from '../../src/transport/transport.ts'
import { account, freshName, open } from '../transports/sqs-harness.ts'
import { message, receive, signal } from '../transports/sqs-scene.ts'
import { type SqsServer, sqsServers } from '../transports/sqs-servers.ts'
import { until } from '../transports/until.ts'
import { produce, work } from './load.ts'
import { type TcpProxy, tcpProxy } from './tcp-proxy.ts'

const servers = sqsServers()

for (const server of servers) {
  test(`${server.name}: connections that are cut under load lose nothing.`, async (t) => {
    const { transport, proxy } = await behindProxy(t, server)
    const stop = new AbortController()
    const confirmed = new Set<string>()
    const done = new Set<string>()
    const producers = [0, 1, 2].map((n) => produce(transport, `p${n}`, confirmed, stop.signal))
    const workers = [0, 1].map(() => work(transport, done, stop.signal))
    for (let cuts = 0; cuts < 3; cuts++) {
      const seen = done.size
      await until('100 messages', () => done.size > seen + 100)
      proxy.cut()
    }
    stop.abort()
    await Promise.all([...producers, ...workers])
    const missing = (): readonly string[] => [...confirmed].filter((id) => !done.has(id))
    await work(transport, done, AbortSignal.timeout(20_000), () => missing().length === 0)
    assert.deepEqual(missing(), [])
  })

  test(`${server.name}: a server that is away is unavailable and nothing was sent; back again, all goes on.`, async (t) => {
    const { transport, proxy } = await behindProxy(t, server)
    const from = await transport.subscribe('q', { group: 'g', leaseMs: 30_000, maxInFlight: 1 })
    proxy.refuse()
    proxy.cut()
    const refusal = async (): Promise<string> => {
      const sending = transport.send('q', [message()], { signal })
      const { code, outcome } = transport.diagnose(await sending.catch((each: unknown) => each))
      return `${code} ${outcome}`
    }
    // The first call may have gone out on a connection that was cut under it.
    assert.match(await refusal(), /^unavailable/)
    assert.equal(await refusal(), 'unavailable notApplied')
    const thrown = await receive(from).catch((each: unknown) => each)
    assert.equal(transport.diagnose(thrown).code, 'unavailable')
    await proxy.heal()
    const startedAt = performance.now()
    await transport.send('q', [message()], { signal })
    assert.equal((await receive(from)).length, 1)
    t.diagnostic(`resumed after ${Math.round(performance.now() - startedAt)} ms`)
  })

  test(`${server.name}: a call into a hole ends at its limit with an unknown outcome, and a close does not wait for it.`, async (t) => {
    const { transport, proxy } = await behindProxy(t, server, 700)
    const from = await transport.subscribe('q', { group: 'g', leaseMs: 30_000, maxInFlight: 1 })
    await transport.send('q', [message()], { signal })
    const [held] = await receive(from)
    assert.ok(held)
    const waiting = from.receive({ max: 1, waitMs: 60_000, signal }).catch(() => [])
    proxy.blackHole()
    const error = await transport.send('q', [message()], { signal }).catch((each: unknown) => each)
    const { code, outcome } = transport.diagnose(error)
    assert.deepEqual([code, outcome], ['unavailable', 'unknown'])
    const closed = transport.close().then(() => 'closed')
    assert.equal(await Promise.race([closed, sleep(8_000, 'still open', { ref: false })]), 'closed')
    assert.equal(held.claim.lost.aborted, true)
    assert.deepEqual(await waiting, [])
  })

  for (const kind of ['standard', 'fifo'] as const) {
    test(`${server.name}, ${kind}: workers that are killed with messages in hand lose none, and a group keeps its order.`, (t) =>
      killed(t, server, kind))
  }
}

interface Behind {
  readonly transport: Transport
  readonly proxy: TcpProxy
}

async function behindProxy(t: TestContext, server: SqsServer, timeoutMs = 5_000): Promise<Behind> {
  const proxy = await tcpProxy(Number(new URL(server.url).port))
  const endpoint = `http://127.0.0.1:${proxy.port}`
  const transport = await open(sqs({ ...account, endpoint, queues: { q: freshName() }, timeoutMs }))
  t.after(async () => {
    await transport.close()
    await proxy.close()
  })
  await transport.topology.ensure([{ name: 'q', owner: 'o', maxDepth: undefined }], signal)
  return { transport, proxy }
}

const LEASE_MS = 2_000
const GROUPS = 20

async function killed(t: TestContext, server: SqsServer, kind: 'standard' | 'fifo'): Promise<void> {
  const random = seededRandom(`${server.name} ${kind}`)
  const transport = await open(sqs({ ...account, endpoint: server.url, kind }))
  t.after(() => transport.close())
  const queue = freshName()
  await transport.topology.ensure([{ name: queue, owner: 'o', maxDepth: undefined }], signal)
  const sent: Envelope[] = Array.from({ length: 400 }, (_, n) => {
    const group = `g${n % GROUPS}`
    return message({ id: `${group}-${String(n).padStart(3, '0')}`, orderingKey: group })
  })
  const stored = await transport.send(queue, sent, { signal })
  assert.ok(stored.every((each) => each.ok))
  const begun: string[] = []
  const acked = new Set<string>()
  const children = new Set<ChildProcess>()
  t.after(() => {
    for (const child of children) child.kill('SIGKILL')
  })
  const start = (): ChildProcess => {
    const child = startHolder(server, kind, queue, (line) => {
      const [what, id = ''] = line.split(' ')
      if (what === 'begun') begun.push(id)
      else acked.add(id)
    })
    children.add(child)
    return child
  }
  for (let kills = 0; kills < 5; kills++) {
    const seen = acked.size
    const child = start()
    const some = Math.ceil(random() * 40)
    await until('some acks', () => acked.size >= Math.min(sent.length - 1, seen + some))
    child.kill('SIGKILL')
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  }
  start()
  await until(
    'an empty queue',
    async () => {
      const { depth, inFlight } = (await transport.browse?.gauge(queue)) ?? {}
      return depth === 0 && inFlight === 0 && acked.size >= sent.length - 5
    },
    60_000,
  )
  // A killed worker may have acked one and not said so; all others said that they were done.
  assert.deepEqual(
    sent.filter(({ id }) => !begun.includes(id)),
    [],
  )
  for (let group = 0; kind === 'fifo' && group < GROUPS; group++) {
    const ids = [...new Set(begun.filter((id) => id.startsWith(`g${group}-`)))]
    assert.deepEqual(ids, [...ids].sort(), `group ${group}`)
  }
  t.diagnostic(`${begun.length - sent.length} messages came twice after 5 kills`)
}

function startHolder(
  server: SqsServer,
  kind: string,
  queue: string,
  hear: (line: string) => void,
): ChildProcess {
  const file = new URL('./sqs-holder.ts', import.meta.url).pathname
  const args = ['--conditions=millrace-source', file, server.url, kind, queue, String(LEASE_MS)]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  createInterface({ input: child.stdout }).on('line', hear)
  return child
}
