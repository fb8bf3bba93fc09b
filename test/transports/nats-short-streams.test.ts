import assert from 'node:assert/strict'
import { test } from 'node:test'
import { backendUrl } from '../backends.ts'
import { ensureQ, envelope, openNats, signal, take } from './nats-bench.ts'

const servers = backendUrl('nats')
const AGE_MS = 3_000

if (servers !== undefined) {
  test('nats: a message that is to wait for longer than its stream keeps messages is refused with both times: the server would drop it', async (t) => {
    const settings = { horizonMs: AGE_MS, duplicateWindowMs: 1_000 }
    const bench = await openNats(servers, settings)
    t.after(() => bench.dispose())
    const { manager, prefix } = bench
    await manager.streams.update(`${prefix}-queue-q`, { max_age: AGE_MS * 1_000_000 })
    const other = await bench.another(settings)
    await ensureQ(other)
    const now = Date.now()
    const [late, lateMoment, soon] = await other.send(
      'q',
      [
        envelope('late', { delayMs: AGE_MS }),
        envelope('late-moment', { readyAt: now + 60_000 }),
        envelope('soon', { delayMs: 500 }),
      ],
      { signal },
    )
    for (const one of [late, lateMoment]) {
      assert.ok(one?.ok === false && one.fault.code === 'invalid' && !one.fault.retryable)
      assert.match(
        String(one.fault.cause),
        /stream \S+-queue-q of queue "q" drops messages after 3000 ms \(max_age\), and this one is to wait \d+ ms; /,
      )
    }
    assert.equal(soon?.ok, true)
    const [came] = await take(await bench.subscribe(other))
    assert.equal(came?.envelope.id, 'soon')
    const { state } = await manager.streams.info(`${prefix}-queue-q`)
    assert.equal(state.messages, 1)
  })
}
