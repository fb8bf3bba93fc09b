import type { TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { App } from 'millrace'
import { account } from '../transports/sqs-harness.ts'
import { until } from '../transports/until.ts'
import { type TcpProxy, tcpProxy } from './tcp-proxy.ts'

/** What apps behind the proxy wait for an answer: shorter than a fault lasts. */
export const LIMIT_MS = 1_000
const FAULT_MS = 1_500
const SLOW_MS = 40
const PATIENCE_MS = 60_000

const faults: readonly (readonly [string, (proxy: TcpProxy) => void])[] = [
  ['cut', (proxy) => proxy.cut()],
  ['what we say is lost', (proxy) => proxy.block('up')],
  ['what it answers is lost', (proxy) => proxy.block('down')],
  ['a black hole', (proxy) => proxy.blackHole()],
  ['slow', (proxy) => proxy.slow(SLOW_MS)],
]

/** After a fault is over. */
export interface Healed {
  readonly fault: string
  /** Waits for it, and answers how many ms after the end of the fault it came. A failure says how the app is. */
  after(what: string, look: () => boolean): Promise<number>
}

/** Everything that networks do, one after another; `healed` is called when each is over. */
export async function throughFaults(
  t: TestContext,
  { proxy, app }: { readonly proxy: TcpProxy; readonly app: Pick<App, 'health' | 'counters'> },
  healed: (one: Healed) => Promise<void>,
): Promise<void> {
  for (const [fault, begin] of faults) {
    begin(proxy)
    if (fault !== 'cut') await sleep(FAULT_MS)
    await proxy.heal()
    const healedAt = performance.now()
    const after: Healed['after'] = async (what, look) => {
      await until(`${what} after: ${fault}`, look, PATIENCE_MS).catch(async (error: unknown) => {
        const [health, counters] = [await app.health(), app.counters()]
        t.diagnostic(`health ${JSON.stringify(health)}, counters ${JSON.stringify(counters)}`)
        throw error
      })
      return Math.round(performance.now() - healedAt)
    }
    await healed({ fault, after })
  }
}

export type Behind = (t: TestContext, url: string) => Promise<TcpProxy>

export const behindProxy: Behind = async (t, url) => {
  const proxy = await tcpProxy(Number(new URL(url).port))
  t.after(() => proxy.close())
  return proxy
}

/** Options of each transport behind a proxy at this port. */
export const near = {
  redis: (port: number) => ({ url: `redis://127.0.0.1:${port}`, timeoutMs: LIMIT_MS }),
  nats: (port: number) => ({
    servers: `nats://127.0.0.1:${port}`,
    timeoutMs: LIMIT_MS,
    ackWaitMs: 5_000,
    client: { pingInterval: 300, maxPingOut: 2, ignoreClusterUpdates: true },
  }),
  rabbitmq: (port: number) => ({
    url: `amqp://guest:guest@127.0.0.1:${port}`,
    timeoutMs: LIMIT_MS,
    heartbeatMs: 1_000,
  }),
  sqs: (port: number) => ({
    ...account,
    endpoint: `http://127.0.0.1:${port}`,
    timeoutMs: LIMIT_MS,
  }),
  kafka: (port: number) => ({
    ...{ brokers: `127.0.0.1:${port}`, partitions: 3, timeoutMs: LIMIT_MS },
    ...{ sessionTimeoutMs: 3_000, heartbeatMs: 200, revokeDrainMs: 1_000 },
  }),
}
