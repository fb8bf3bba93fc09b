import assert from 'node:assert/strict'
import { test } from 'node:test'
import { hasCode } from 'millrace'
import { memory } from 'millrace/memory'
import { virtualClock } from 'millrace/testing'
import { pause } from '../../src/model/clock.ts'
import type { Sent } from '../../src/model/delivery.ts'
import type { Envelope } from '../../src/model/envelope.ts'
import { heldLine } from '../../src/runtime/held-line.ts'
import { refused, stored } from '../../src/transport/outcomes.ts'
import type { SendOptions, Transport } from '../../src/transport/transport.ts'
import { closeNow, stage } from './stage.ts'

/** A line over a backend on which these keys are held, and what it was asked. */
function scene(...held: readonly string[]) {
  const clock = virtualClock()
  const closing = new AbortController()
  const line = heldLine({ clock, closed: closing.signal })
  const backend = { held: new Set(held), asking: 0, most: 0, together: 0 }
  const done: string[] = []
  /** As a database: it answers when the time is over, or when the key is free. */
  const wait = async (key: string, lockMs: number): Promise<readonly Sent[]> => {
    backend.asking += 1
    backend.most = Math.max(backend.most, backend.asking)
    for (let ms = 0; ms < lockMs && backend.held.has(key); ms += 10) await pause(clock, 10)
    backend.asking -= 1
    return [backend.held.has(key) ? refused('held') : stored(key)]
  }
  const enter = (key: string, name = key, signal?: AbortSignal): Promise<readonly Sent[]> => {
    const sent = line.enter({
      ...{ queue: 'q', key, signal },
      alone: (lockMs) => wait(key, lockMs),
      together: async () => {
        backend.together += 1
        return wait(key, 0)
      },
      late: () => new Error(`${name} is late`),
    })
    sent.then(
      () => done.push(name),
      (error: unknown) => done.push(String(error)),
    )
    return sent
  }
  return { clock, closing, line, backend, enter, done }
}

test('two wait at the backend at the same time, and each key gets its turn', async () => {
  const keys = Array.from({ length: 100 }, (_, n) => `k${n}`)
  const { clock, backend, enter, done } = scene(...keys)
  for (const key of keys) void enter(key)
  await clock.advance(1_000)
  assert.deepEqual([backend.most, done], [2, []])
  backend.held.delete('k77')
  await clock.advance(6_000)
  assert.deepEqual(done, ['k77'])
  backend.held.clear()
  await clock.advance(1_000)
  assert.deepEqual([backend.most, done.length], [2, 100])
})

test('one that waits alone has its key in the moment in which it is free', async () => {
  const { clock, backend, enter, done } = scene('k')
  void enter('k')
  await clock.advance(12_345)
  backend.held.clear()
  await clock.advance(10)
  assert.deepEqual(done, ['k'])
})

test('of one key the first alone waits at the backend; once it got through the others go together, in their order', async () => {
  const { clock, line, backend, enter, done } = scene('k')
  for (const name of ['a', 'b', 'c', 'd']) void enter('k', name)
  await clock.advance(5_000)
  assert.deepEqual(
    [backend.most, backend.together, line.has('k'), line.has('other')],
    [1, 0, true, false],
  )
  backend.held.clear()
  await clock.advance(10)
  assert.deepEqual([done, backend.together, line.isEmpty], [['a', 'b', 'c', 'd'], 3, true])
})

test('who waits in vain is told after 20 s, each in its own time; before, health names the oldest', async () => {
  const { clock, line, enter, done } = scene('k', 'l')
  void enter('k', 'a')
  await clock.advance(4_000)
  assert.deepEqual(line.problems(), [])
  void enter('k', 'b')
  void enter('l', 'c')
  await clock.advance(2_000)
  assert.match(line.problems().join(), /^queue "q": 3 sends wait .* the first for 6 s/)
  await clock.advance(15_000)
  assert.deepEqual(done, ['Error: a is late'])
  await clock.advance(4_000)
  assert.deepEqual(done.toSorted(), ['Error: a is late', 'Error: b is late', 'Error: c is late'])
  assert.deepEqual([line.isEmpty, line.problems()], [true, []])
})

test('a signal, the end of the app and a line that is full end the wait', async () => {
  const { clock, closing, line, backend, enter, done } = scene('k')
  const own = new AbortController()
  void enter('k', 'first')
  void enter('k', 'second', own.signal)
  own.abort(new Error('enough'))
  await clock.advance(0)
  assert.deepEqual(done, ['Error: enough'])
  for (let n = 1; n < 10_000; n++) enter('k', `n${n}`).catch(() => undefined)
  await assert.rejects(enter('k', 'one more'), /one more is late/)
  await assert.rejects(enter('l', 'other'), /other is late/)
  backend.held.clear()
  await clock.advance(1_100)
  assert.deepEqual([line.isEmpty, done.includes('first')], [true, true])
  backend.held.add('k')
  void enter('k', 'there is room again')
  closing.abort()
  await clock.advance(1_100)
  assert.ok(line.isEmpty)
  assert.match(done.at(-1) ?? '', /the app was closed while this send waited/)
  await assert.rejects(enter('k'), (error: unknown) => hasCode(error, 'MILLRACE_CLOSED'))
})

test('who gives up while the backend is asked is told what came of that', async () => {
  const { clock, backend, enter, done } = scene('k')
  const own = new AbortController()
  void enter('k', 'stored all the same', own.signal)
  await clock.advance(500)
  own.abort(new Error('enough'))
  await clock.advance(100)
  assert.deepEqual(done, [])
  backend.held.delete('k')
  await clock.advance(10)
  assert.deepEqual(done, ['stored all the same'])
})

test('a backend that answers at once is asked every 50 ms, not again and again', async () => {
  const { clock, line, done } = scene()
  let asked = 0
  const answer = async (): Promise<readonly Sent[]> => [asked < 20 ? refused('held') : stored('k')]
  const alone = (): Promise<readonly Sent[]> => {
    asked += 1
    return answer()
  }
  const late = (): Error => new Error('late')
  line
    .enter({ queue: 'q', key: 'k', signal: undefined, alone, together: answer, late })
    .then(() => done.push('k'), assert.fail)
  await clock.advance(940)
  assert.deepEqual([asked, done], [19, []])
  await clock.advance(50)
  assert.deepEqual([asked, done], [20, ['k']])
})

for (const [what, own, depth] of [
  ['an idempotency key', { idempotencyKey: 'h' }, 2],
  ['an ordering key', { orderingKey: 'h' }, 4],
] as const) {
  test(`who sends with ${what} that is waited for gets in line at once, and keeps nobody else`, async () => {
    const store = memory()
    const backend = { held: true, gathered: 0 }
    const { app, clock, queue } = await stage({
      transport: {
        ...store,
        connect: async (context) => {
          const inner = await store.connect(context)
          return { ...inner, send: (name, batch, options) => sendTo(inner, name, batch, options) }
        },
      },
    })
    const sendTo = async (
      inner: Transport,
      name: string,
      batch: readonly Envelope[],
      options: SendOptions,
    ): Promise<readonly Sent[]> => {
      const isHeld = ({ remember, orderingKey }: Envelope): boolean =>
        backend.held && (remember ?? orderingKey) !== undefined
      if (!batch.some(isHeld)) return inner.send(name, batch, options)
      if (batch.length > 1) backend.gathered += 1
      await pause(clock, options.lockMs ?? 0)
      if (!batch.some(isHeld)) return inner.send(name, batch, options)
      return batch.map((envelope) => (isHeld(envelope) ? refused('held') : stored(envelope.id)))
    }
    const send = (): Promise<unknown> => app.send(queue, { orderId: 'a' }, own)
    const first = send()
    await clock.advance(1_100)
    const others = [send(), send(), app.send(queue, { orderId: 'b' })]
    await clock.advance(2_000)
    assert.equal(backend.gathered, 0)
    backend.held = false
    await clock.advance(5_000)
    await Promise.all([first, ...others])
    assert.equal((await app.admin.stats(queue)).depth, depth)
    await closeNow(app, clock)
  })
}
