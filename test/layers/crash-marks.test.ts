import assert from 'node:assert/strict'
import { test } from 'node:test'
import { virtualClock } from 'millrace/testing'
import { codeOf } from '../../src/conformance/acts.ts'
import { copies } from '../../src/layers/copies.ts'
import { crashMarks } from '../../src/layers/crash-marks.ts'
import { PAST_HEADER } from '../../src/layers/past.ts'
import { settleEach } from '../../src/layers/settle-each.ts'
import type { Delivery } from '../../src/model/delivery.ts'
import { silentLogger } from '../../src/model/logger.ts'
import { beforeRun } from '../../src/model/retry.ts'
import { memoryStore } from '../../src/stores/memory/memory-store.ts'
import type { Subscription } from '../../src/transport/transport.ts'
import { countingStore } from './counting-store.ts'
import {
  acked,
  bareRelease,
  crash,
  idsOf,
  LEASE_MS,
  receive,
  type Stage,
  stage,
  subscribe,
} from './crash-stage.ts'
import { memoryLog } from './memory-log.ts'

const { signal } = new AbortController()

/** What a broker makes of a message that its sender gave no id: another one at each handing out, until a copy has one. */
function renamed(delivery: Delivery): Delivery {
  const { envelope } = delivery
  if (PAST_HEADER in envelope.headers) return delivery
  const id = `made-${Math.random()}`
  return { ...delivery, idIsPassing: true, envelope: { ...envelope, id } }
}

test('What succeeds at its first handing out asks the store for nothing.', async () => {
  const on = await stage()
  const holder = await on.holder()
  await on.send(holder, 'a', 'b', 'c')
  const from = await subscribe(holder)
  const batch = await receive(from)
  assert.equal(batch.length, 3)
  for (const outcome of await from.settle(batch.map(acked))) assert.ok(outcome.ok)
  assert.deepEqual(holder.counting.calls, [])
})

test('A suspect costs a read, a write and, at its end, one more call for all of a batch.', async () => {
  const on = await stage()
  const holder = await on.holder()
  await on.send(holder, 'a', 'b', 'c')
  await crash(on, 3)
  const from = await subscribe(holder)
  const batch = await receive(from)
  assert.equal(batch.length, 3)
  await from.settle(batch.map(acked))
  assert.deepEqual(holder.counting.calls, ['read', 'write', 'forget'])
})

test('Of a log, what no holder before can have had in hand is a first handing out.', async () => {
  const time = virtualClock()
  const log = memoryLog(time, 1)
  const context = { signal, clock: time, random: Math.random, logger: silentLogger } as const
  const counting = countingStore(await memoryStore().connect({ ...context, migrate: 'auto' }))
  const options = { store: counting.store, clock: time, random: Math.random, copied: true }
  const transport = crashMarks(copies(settleEach(log.connect())), options)
  await transport.topology.ensure([{ name: 'q', owner: 'o', maxDepth: undefined }], signal)
  const batch = Array.from({ length: 900 }, (_, n) => {
    return { id: `m${n}`, headers: {}, priority: 0, body: new Uint8Array([1]) }
  })
  await transport.send('q', batch, { signal })
  const from = await transport.subscribe('q', { group: 'g', leaseMs: 1_000, maxInFlight: 100 })
  for (let done = 0; done < 900; ) {
    const some = await receive(from)
    const before = counting.calls.length
    await from.settle(some.map(acked))
    done += some.length
    // 500, and 300 for a hundred in flight: the larger one.
    if (done <= 500) assert.ok(counting.calls.length > before)
  }
  assert.equal(counting.calls.filter((call) => call === 'read').length, 5)
})

test('A killed holder whose messages come alone is blamed on one of them: it dies alone, the others get done.', async () => {
  const on = await stage()
  const sender = await on.holder()
  const all = Array.from({ length: 20 }, (_, n) => `m${String(n).padStart(2, '0')}`)
  await on.send(sender, ...all)
  await crash(on, 20)
  await crash(on, 20)
  const done = new Set<string>()
  let deaths = 0
  let isDead = false
  for (let life = 0; life < 10 && done.size < 19; life++) {
    const holder = await on.holder()
    const from = await subscribe(holder)
    for (let isAlive = true; isAlive; ) {
      const [one, ...others] = await receive(from)
      if (one === undefined) break
      assert.deepEqual(others, [])
      if (beforeRun(one.history, { attempts: 8 })?.errorClass === 'crashed') {
        assert.equal(one.envelope.id, 'm03')
        await from.settle([acked(one)])
        isDead = true
      } else if (one.envelope.id === 'm03') {
        assert.equal(one.history.crashes, 1 + deaths)
        deaths += 1
        isAlive = false
        await holder.die()
      } else {
        assert.equal(one.history.crashes, 1, `${one.envelope.id} was blamed`)
        done.add(one.envelope.id)
        await from.settle([acked(one)])
      }
    }
  }
  assert.deepEqual(
    [...done].toSorted(),
    all.filter((id) => id !== 'm03'),
  )
  assert.equal(isDead, true)
})

test('Suspects that wait for their turn stay ours, and go to others once nobody asks for them.', async () => {
  const on = await stage()
  const holder = await on.holder()
  await on.send(holder, 'a', 'b', 'c')
  await crash(on, 3)
  await crash(on, 3)
  const from = await subscribe(holder)
  const [first] = await receive(from)
  assert.ok(first?.alone)
  const elsewhere = await subscribe(await on.holder())
  for (let beat = 0; beat < 20; beat++) {
    await on.time.advance(LEASE_MS / 4)
    assert.deepEqual(await from.renew?.([first], LEASE_MS), [{ ok: true }])
    assert.deepEqual(await receive(elsewhere), [], `beat ${beat}`)
  }
  await from.settle([acked(first)])
  await on.time.advance(2 * LEASE_MS)
  const [second] = await receive(elsewhere)
  assert.ok(second?.alone)
  assert.equal(second.history.crashes, 1)
  await elsewhere.settle([acked(second)])
  const [third] = await receive(elsewhere)
  assert.ok(third?.alone)
  assert.deepEqual(idsOf([first, second, third]), ['a', 'b', 'c'])
})

test('While something else is in hand no suspect is marked: what kills that is not blamed on it.', async () => {
  const on = await stage()
  const sender = await on.holder()
  await on.send(sender, 'a', 'b')
  await crash(on, 2)
  await crash(on, 2)
  for (const fresh of ['c', 'd', 'e']) {
    await on.send(sender, fresh)
    const doomed = await on.holder()
    const from = await subscribe(doomed)
    // Whatever else came beside it: the suspects wait, however often the worker asks.
    const first = await receive(from)
    if (first.some(({ alone }) => alone)) {
      assert.equal(first.length, 1)
      await from.settle(first.map(bareRelease))
      continue
    }
    assert.deepEqual(await receive(from), [])
    await doomed.die()
  }
  const holder = await on.holder()
  const from = await subscribe(holder)
  const crashes = new Map<string, number>()
  for (let found = await receive(from); found.length > 0; found = await receive(from)) {
    for (const { envelope, history } of found) crashes.set(envelope.id, history.crashes)
    assert.ok(found.length === 1 || found.every(({ alone }) => !alone))
    for (const outcome of await from.settle(found.map(acked))) assert.ok(outcome.ok)
  }
  assert.deepEqual([crashes.get('a'), crashes.get('b')], [1, 1])
  assert.deepEqual([...crashes.keys()].toSorted(), ['a', 'b', 'c', 'd', 'e'])
})

test('A receive that waits gets the suspect as soon as the last one before it is settled.', async () => {
  const on = await stage()
  const sender = await on.holder()
  await on.send(sender, 'a')
  await crash(on, 1)
  await crash(on, 1)
  await on.send(sender, 'b', 'c')
  const from = await subscribe(await on.holder())
  const together = await receive(from)
  assert.deepEqual(idsOf(together), ['b', 'c'])
  let came: readonly Delivery[] | undefined
  const waiting = from.receive({ max: 5, waitMs: 60_000, signal }).then((found) => {
    came = found
  })
  const [b, c] = together as [Delivery, Delivery]
  assert.deepEqual((await from.settle([bareRelease(b)])).map(codeOf), ['ok'])
  await on.time.advance(100)
  assert.equal(came, undefined)
  await from.settle([acked(c)])
  await waiting
  assert.deepEqual(idsOf(came ?? []), ['a'])
})

test('A suspect that its worker gives back waits here, and a receive that waits is told.', async () => {
  const on = await stage()
  const holder = await on.holder()
  await on.send(holder, 'a')
  await crash(on, 1)
  await crash(on, 1)
  const from = await subscribe(holder)
  const [first] = await receive(from)
  assert.ok(first?.alone)
  const waiting = from.receive({ max: 5, waitMs: 60_000, signal })
  assert.deepEqual(await from.settle([bareRelease(first)]), [{ ok: true }])
  const [again] = await waiting
  assert.ok(again?.alone)
  // Handed out once by the broker: it was not asked for again.
  assert.equal(again.deliveries, 3)
  const twice = await from.settle([bareRelease(again), bareRelease(again)])
  assert.deepEqual(twice.map(codeOf), ['ok', 'lost'])
  assert.deepEqual((await from.settle([acked(again)])).map(codeOf), ['lost'])
  assert.deepEqual(idsOf(await receive(from)), ['a'])
  assert.deepEqual(await receive(from), [])
})

test('A holder that lost its lease and lives is no crash to itself, and leaves no trace when it is late.', async () => {
  const on = await stage()
  const holder = await on.holder()
  await on.send(holder, 'a')
  await crash(on, 1)
  const from = await subscribe(holder)
  const [late] = await receive(from)
  assert.ok(late)
  await on.time.advance(LEASE_MS + 100)
  const [again] = await receive(from)
  assert.equal(again?.history.crashes, 0)
  const outcomes = await from.settle([
    { as: 'released', delivery: late, delayMs: 0, counted: false },
  ])
  assert.deepEqual(outcomes.map(codeOf), ['lost'])
  await on.time.advance(LEASE_MS + 100)
  // The last one was never settled either, so for somebody else its holder has vanished.
  const [elsewhere] = await receive(await subscribe(await on.holder()))
  assert.equal(elsewhere?.history.crashes, 1)
})

/** Holders to whose clock everything of `stood` may be somebody else's. */
async function stillStage(stood: ReadonlySet<string>): Promise<Stage> {
  return await stage((delivery) => {
    const { claim, envelope } = delivery
    const isOver = (): boolean => stood.has(envelope.id)
    const { ending, lost } = claim
    return { ...delivery, claim: { expiresAt: undefined, isOver, ending, lost } }
  })
}

test('Who stood still until others may have a message neither marks it nor hands it out.', async () => {
  const on = await stillStage(new Set(['a']))
  const holder = await on.holder()
  await on.send(holder, 'a', 'b')
  const doomed = await on.holder()
  await receive(await subscribe(doomed))
  await doomed.die()
  const from = await subscribe(holder)
  assert.deepEqual(idsOf(await receive(from)), ['b'])
  await holder.die()
  const next = await on.holder()
  const came = await receive(await subscribe(next))
  assert.deepEqual(
    came.map(({ envelope, history }) => [envelope.id, history.crashes]),
    [['b', 1]],
  )
})

test('What waited here for its lonely run is not handed out once others may have it.', async () => {
  const stood = new Set<string>()
  const on = await stillStage(stood)
  await on.send(await on.holder(), 'a', 'b', 'c')
  await crash(on, 3)
  // The second death is seen, so all of them are to run alone.
  await crash(on, 3)
  const from = await subscribe(await on.holder())
  const [first, ...none] = await receive(from)
  assert.ok(first !== undefined && none.length === 0)
  for (const id of ['a', 'b', 'c']) if (id !== first.envelope.id) stood.add(id)
  const [outcome] = await from.settle([acked(first)])
  assert.ok(outcome?.ok)
  assert.deepEqual(await receive(from), [])
})

test('A mark stays until the settlement is confirmed: a holder that dies before has vanished.', async () => {
  const on = await stage()
  const holder = await on.holder()
  await on.send(holder, 'a')
  await crash(on, 1)
  const doomed = await on.holder()
  const from = await subscribe(doomed)
  const batch = await receive(from)
  doomed.isDeaf = true
  await assert.rejects(from.settle(batch.map(acked)), /the broker is away/)
  await doomed.die()
  const [again] = await receive(await subscribe(holder))
  assert.equal(again?.history.crashes, 1)
})

test('Close takes the marks back before the broker can hand the messages to others.', async () => {
  const on = await stage()
  const holder = await on.holder()
  await on.send(holder, 'a')
  await crash(on, 1)
  const from = await subscribe(holder)
  const [delivery] = await receive(from)
  const { calls } = holder.counting
  calls.length = 0
  delivery?.claim.lost.addEventListener('abort', () => calls.push('lost'))
  await from.close()
  await from.close()
  assert.deepEqual(calls, ['read', 'write', 'lost'])
  assert.equal(on.time.nextDueAt(), undefined, 'no timer is left behind')
})

test('While the store is away suspects go back untouched, and first deliveries run.', async () => {
  const on = await stage()
  const holder = await on.holder()
  await on.send(holder, 'old')
  await crash(on, 1)
  await on.send(holder, 'new')
  const from = await subscribe(holder)
  holder.counting.fails = () => true
  const batch = await receive(from)
  assert.deepEqual(idsOf(batch), ['new'])
  for (const outcome of await from.settle(batch.map(acked))) assert.ok(outcome.ok)
  await assert.rejects(receive(from), /the store is away/)
  holder.counting.fails = () => false
  const [old] = await receive(from)
  assert.equal(old?.history.crashes, 0)
})

test('What is given back while the store is away waits here: nobody may take its holder for a dead one.', async () => {
  const on = await stage()
  const holder = await on.holder()
  await on.send(holder, 'a', 'b', 'c')
  await crash(on, 3)
  const from = await subscribe(holder)
  const [a, b, c] = await receive(from)
  assert.ok(a && b && c)
  holder.counting.fails = (call) => call === 'write'
  const outcomes = await from.settle([acked(a), bareRelease(b), bareRelease(c)])
  assert.deepEqual(outcomes.map(codeOf), ['ok', 'ok', 'ok'])
  const elsewhere = await subscribe(await on.holder())
  assert.deepEqual(await receive(elsewhere), [])
  await assert.rejects(receive(from), /the store is away/)
  // Unasked for, they still do not go to others before the store knows.
  for (let beat = 0; beat < 12; beat++) await on.time.advance(LEASE_MS / 4)
  assert.deepEqual(await receive(elsewhere), [])
  holder.counting.fails = () => false
  const [again] = await receive(from)
  assert.equal(again?.history.crashes, 0)
  assert.equal(again.alone, false)
  await from.settle([acked(again)])
  for (let beat = 0; beat < 12; beat++) await on.time.advance(LEASE_MS / 4)
  const [other] = await receive(elsewhere)
  assert.equal(other?.history.crashes, 0)
  assert.deepEqual(idsOf([again, other]), ['b', 'c'])
})

test('What one consumer of a log loses to another is no crash.', async () => {
  const time = virtualClock()
  const log = memoryLog(time, 2)
  const context = { signal, clock: time, random: Math.random, logger: silentLogger } as const
  const stores = memoryStore()
  const opened = async (): Promise<Subscription> => {
    const store = await stores.connect({ ...context, migrate: 'auto' })
    const options = { store, clock: time, random: Math.random, copied: true }
    const transport = crashMarks(copies(settleEach(log.connect())), options)
    await transport.topology.ensure([{ name: 'q', owner: 'o', maxDepth: undefined }], signal)
    const batch = ['a1', 'b1'].map((id) => {
      return { id, orderingKey: id[0] ?? '', headers: {}, priority: 0, body: new Uint8Array([1]) }
    })
    if (log.committed('q').length === 2 && sent++ === 0)
      await transport.send('q', batch, { signal })
    return transport.subscribe('q', { group: 'g', leaseMs: 1_000, maxInFlight: 100 })
  }
  let sent = 0
  const first = await opened()
  assert.equal((await receive(first)).length, 2)
  const second = await opened()
  await time.advance(10)
  const [moved] = await receive(second)
  assert.ok(moved)
  assert.equal(moved.history.crashes, 0)
  assert.equal(moved.alone, false)
})

test('Of a message without an id crashes are counted from its second handing out on, as of one that has one.', async () => {
  const on = await stage(renamed)
  const { time } = on
  await on.send(await on.holder(), 'whatever', 'other')
  // Not seen: nobody could find a mark of the first handing out.
  await crash(on, 2)
  const next = async (from: Subscription): Promise<readonly Delivery[]> => {
    const none = await receive(from)
    if (none.length > 0) return none
    await time.advance(10)
    return await receive(from)
  }
  const seen: Delivery[][] = []
  for (let life = 0; life < 3; life++) {
    const holder = await on.holder()
    seen.push([...(await next(await subscribe(holder)))])
    await holder.die()
  }
  const [first = [], second = [], third = []] = seen
  assert.deepEqual(
    seen.map((batch) => batch.map(({ history, alone }) => [history.crashes, alone])),
    [
      [
        [0, false],
        [0, false],
      ],
      [[1, true]],
      [[2, true]],
    ],
  )
  // By now it has one name, which no inbox may count on all the same.
  assert.ok(idsOf(first).includes(idsOf(second)[0] ?? ''))
  assert.deepEqual(idsOf(second), idsOf(third))
  assert.ok([...first, ...second].every(({ idIsPassing }) => idIsPassing === true))
})

test('A message without an id that comes again is not run while the broker takes no copy of it: it goes back, and that is said.', async () => {
  const on = await stage(renamed)
  await on.send(await on.holder(), 'whatever')
  await crash(on, 1)
  const holder = await on.holder()
  holder.takesNothing = true
  const from = await subscribe(holder)
  await assert.rejects(receive(from), {
    code: 'MILLRACE_UNAVAILABLE',
    message: /1 messages came again without an id/,
  })
  holder.takesNothing = false
  assert.deepEqual(await receive(from), [])
  await on.time.advance(10)
  assert.equal((await receive(from)).length, 1)
})
