import assert from 'node:assert/strict'
import { test } from 'node:test'
import { hasCode } from 'millrace'
import { backendUrl } from '../backends.ts'
import { tcpProxy } from '../faults/tcp-proxy.ts'
import { ensure, freshName, never, openRabbit, subscribe } from './rabbitmq-subjects.ts'

const url = backendUrl('rabbitmq')

if (url !== undefined) {
  test('While the broker is away, what receiving throws says once that there is no connection, and why.', async (t) => {
    const { port } = new URL(url)
    const proxy = await tcpProxy(Number(port))
    const through = new URL(url)
    through.port = `${proxy.port}`
    const transport = await openRabbit({ url: through.href })
    t.after(async () => {
      await proxy.heal()
      await transport.close()
      await proxy.close()
    })
    const queue = freshName('away')
    await ensure(transport, queue)
    const subscription = await subscribe(transport, queue)
    t.after(() => subscription.close())
    proxy.refuse()
    proxy.cut()
    const receive = () => subscription.receive({ max: 1, waitMs: 500, signal: never })
    for (let asked = 0; asked < 3; asked += 1) {
      await assert.rejects(receive(), (error: unknown) => {
        assert.ok(hasCode(error, 'MILLRACE_UNAVAILABLE') && error.retryable)
        assert.match(error.message, /^rabbitmq: no consuming connection \([^()]+\)$/)
        return true
      })
    }
  })
}
