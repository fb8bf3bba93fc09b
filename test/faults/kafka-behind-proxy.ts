import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { startKafka } from '../../scripts/rig/kafka-server.ts'
import { type TcpProxy, tcpProxy } from './tcp-proxy.ts'

/** Kafka tells clients its own address, and past a proxy they would go there: this broker says the proxy's. It ends with the test. */
export async function kafkaBehindProxy(t: TestContext): Promise<TcpProxy> {
  const proxies: TcpProxy[] = []
  const server = await startKafka({
    config: async ({ port }) => {
      const proxy = await tcpProxy(port)
      proxies.push(proxy)
      return [`advertised.listeners=PLAINTEXT://127.0.0.1:${proxy.port}`]
    },
  })
  t.after(() => server.stop())
  const [proxy] = proxies
  assert.ok(proxy)
  t.after(() => proxy.close())
  return proxy
}
