import assert from 'node:assert/strict'
import { test } from 'node:test'
import { defineQueue, hasCode } from 'millrace'
import { memory } from 'millrace/memory'
import { virtualClock } from 'millrace/testing'
import { z } from 'zod'
import { silentLogger } from '../../src/model/logger.ts'
import { admission } from '../../src/runtime/admission.ts'
import type { CapacityOptions } from '../../src/runtime/capacity-choice.ts'
import { drainRate } from '../../src/runtime/drain-rate.ts'
import { queueTotal } from '../../src/runtime/queue-total.ts'
import type { Transport } from '../../src/transport/transport.ts'

/** An admission over a backend of which it is decided here what it counts, and when it answers. */
async function sampled(capacity: Exclude<CapacityOptions, 'unbounded'>, priorities?: number) {
  const clock = virtualClock()
  const now = (): number => clock.now()
  const queue = defineQueue({
    ...{ name: 'orders', owner: 'team', payload: z.number(), capacity },
    ...(priorities && { priorities }),
  })
  const backend = { holds: 0, scheduled: 0, inFlight: 0, asked: 0, answer: Promise.resolve() }
  const context = { clock, random: () => 0.5, logger: silentLogger, migrate: 'auto' } as const
  const inner = await memory().connect({ ...context, signal: new AbortController().signal })
  const nothing = { dead: 0, ageMs: 0, paused: false }
  const transport: Transport = {
    ...inner,
    traits: { ...inner.traits, capacity: 'sampled' },
    browse: {
      gauge: async () => {
        backend.asked++
        const { holds: depth, scheduled, inFlight } = backend
        await backend.answer
        return { ...nothing, depth, scheduled, inFlight }
      },
    },
  }
  const total = queueTotal({ queue: queue.name, transport, now })
  const drain = drainRate({ now, maxMs: 60_000, total })
  const admitted = admission({ queue, transport, now, drain, total })
  /** As a sender does; true when it was let in. */
  const send = async (messages = 1, priority = 0): Promise<boolean> => {
    try {
      await admitted.admit({ messages, priority, onTheWay: 0 })
    } catch (error) {
      if (!hasCode(error, 'MILLRACE_QUEUE_FULL')) throw error
      return false
    }
    backend.holds += messages
    return true
  }
  const fill = async (): Promise<void> => {
    while (await send()) await clock.advance(10)
    assert.equal(backend.holds, capacity.maxDepth)
  }
  return { clock, backend, total, admitted, send, fill }
}

test('with a watermark low priorities are refused first: the lowest at that share of maxDepth, the highest at all of it', async () => {
  const { admitted, backend, clock, send } = await sampled({ maxDepth: 10, watermark: 0.4 }, 3)
  const fillAt = async (priority: number): Promise<number> => {
    while (await send(1, priority)) await clock.advance(10)
    return backend.holds
  }
  assert.deepEqual([await fillAt(0), await fillAt(1), await fillAt(2)], [4, 7, 10])
  assert.throws(() => admitted.admitNow({ messages: 1, priority: 1, onTheWay: 0 }), {
    code: 'MILLRACE_QUEUE_FULL',
    message: /^queue "orders" is full for priority 1: 7 messages wait/,
  })
  backend.holds = 6
  await clock.advance(1_000)
  assert.deepEqual([await send(1, 0), await send(2, 1), await send(1, 1)], [false, false, true])
  assert.throws(() => admitted.admitNow({ messages: 4, priority: 2, onTheWay: 0 }), {
    message: /^queue "orders" is full: 10 messages wait/,
  })
})

const waits = { maxDepth: 5, whenFull: 'wait', waitMs: 1_000 } as const

test('what the workers of this process end makes room at once, without another count', async () => {
  const { clock, backend, admitted, send, fill } = await sampled(waits)
  await fill()
  const { asked } = backend
  const mark = admitted.mark()
  backend.holds -= 2
  admitted.left(2, mark)
  assert.deepEqual([await send(), await send(), await send()], [true, true, false])
  assert.deepEqual([backend.holds, backend.asked], [5, asked])
  // The next count has seen it, so it makes no room once more.
  await clock.advance(1_000)
  assert.equal(await send(), false)
})

test('what a count may have seen leave does not make room a second time', async () => {
  const { clock, backend, admitted, send, fill } = await sampled(waits)
  await fill()
  const mark = admitted.mark()
  backend.holds -= 1
  await clock.advance(1_000)
  // Counted before the worker hears that it is settled.
  assert.equal(await send(), true)
  admitted.left(1, mark)
  assert.equal(await send(), false)
  assert.equal(backend.holds, 5)
})

test('what is let in while the backend counts is counted beside what it answers', async () => {
  const { backend, admitted, send } = await sampled({ maxDepth: 5 })
  const counting = Promise.withResolvers<void>()
  backend.answer = counting.promise
  const first = send()
  // Inside a transaction that may wait for no count.
  admitted.admitNow({ messages: 3, priority: 0, onTheWay: 0 })
  backend.holds += 3
  counting.resolve()
  assert.deepEqual([await first, await send(), await send()], [true, true, false])
  assert.equal(backend.holds, 5)
})

test('a count that failed is asked for anew by the next send', async () => {
  const { backend, send } = await sampled({ maxDepth: 5 })
  backend.answer = Promise.reject(new Error('the backend is away'))
  await assert.rejects(send(), { code: 'MILLRACE_UNAVAILABLE' })
  backend.answer = Promise.resolve()
  assert.equal(await send(), true)
})

test('what was removed for a new one is admitted in exchange once, also when a count comes between the two', async () => {
  for (const early of [false, true]) {
    const { clock, backend, admitted, send, fill } = await sampled({
      maxDepth: 5,
      whenFull: 'shed',
    })
    await fill()
    await admitted.makeRoom(async () => {
      backend.holds -= 1
      // Counted before it is known how many were removed.
      if (early) await clock.advance(1_000)
      if (early) assert.equal(await send(5), false)
      return 1
    })
    if (!early) await clock.advance(1_000)
    assert.deepEqual([await send(), await send()], [true, false])
    assert.equal(backend.holds, 5)
  }
})

test('a full queue is counted five times a second at most, and as much again for nobody else', async () => {
  const { clock, backend, send, fill } = await sampled({ maxDepth: 5 })
  await fill()
  const { asked } = backend
  for (let ms = 0; ms < 10_000; ms += 10) {
    await clock.advance(10)
    assert.equal(await send(), false)
  }
  assert.ok(backend.asked - asked <= 50, `${backend.asked - asked} counts`)
})

test('where somebody waits it is counted sooner, and a count that takes long is followed by nine times its rest', async () => {
  const { clock, backend, send, fill } = await sampled(waits)
  await fill()
  backend.holds = 4
  await clock.advance(10)
  assert.equal(await send(), true)
  const slow = Promise.withResolvers<void>()
  backend.answer = slow.promise
  await clock.advance(1_000)
  const sent = send()
  await clock.advance(15)
  slow.resolve()
  assert.equal(await sent, false)
  const { asked } = backend
  backend.holds = 4
  await clock.advance(134)
  assert.deepEqual([await send(), backend.asked], [false, asked])
  await clock.advance(1)
  assert.deepEqual([await send(), backend.asked], [true, asked + 1])
})

test('what is scheduled and what is in flight counts as what is ready', async () => {
  for (const counted of ['holds', 'scheduled', 'inFlight'] as const) {
    const { backend, send } = await sampled({ maxDepth: 3 })
    backend[counted] = 2
    assert.deepEqual([await send(), await send()], [true, false], counted)
  }
})

test('what was on its way when a count began counts beside it', async () => {
  const { backend, admitted } = await sampled({ maxDepth: 5 })
  backend.holds = 3
  await admitted.admit({ messages: 1, priority: 0, onTheWay: 1 })
  assert.throws(() => admitted.admit({ messages: 1, priority: 0, onTheWay: 2 }), {
    code: 'MILLRACE_QUEUE_FULL',
  })
})

test('a count that began before ours may not have seen what we sent since, and is not taken for ours', async () => {
  const { clock, backend, total, send } = await sampled({ maxDepth: 8 })
  await send()
  const early = Promise.withResolvers<void>()
  backend.answer = early.promise
  void total.read()
  await send(2)
  await clock.advance(20)
  const sent = Array.from({ length: 8 }, () => send())
  backend.answer = Promise.resolve()
  early.resolve()
  const taken = (await Promise.all(sent)).filter((was) => was).length
  assert.deepEqual([taken, backend.holds], [5, 8])
})

test('a send that must not wait decides by the last count, and asks for another where that is old', async () => {
  const { clock, backend, admitted } = await sampled({ maxDepth: 5 })
  admitted.admitNow({ messages: 1, priority: 0, onTheWay: 0 })
  await clock.advance(0)
  backend.holds = 5
  admitted.admitNow({ messages: 1, priority: 0, onTheWay: 0 })
  await clock.advance(10_000)
  admitted.admitNow({ messages: 1, priority: 0, onTheWay: 0 })
  await clock.advance(0)
  assert.throws(() => admitted.admitNow({ messages: 1, priority: 0, onTheWay: 0 }), {
    code: 'MILLRACE_QUEUE_FULL',
  })
})
