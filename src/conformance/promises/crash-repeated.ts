import assert from 'node:assert/strict'
import type { Delivery } from '../../model/delivery.ts'
import { type AttemptHistory, CRASH_CODE } from '../../model/history.ts'
import type { Subscription } from '../../transport/transport.ts'
import { acked, assertAllOk, idsOf, released } from '../acts.ts'
import type { Promised, Subject } from '../promise.ts'
import type { Scope } from '../scope.ts'
import { alone, crashWith } from './crash-acts.ts'

const when = ({ traits }: Subject): boolean => traits.countsCrashes === 'repeated'

/** A crash that need not be seen, and one that is. Where the first was, only one of them is in hand at the second. */
async function crashTwiceWith(scope: Scope, queue: string, count: number): Promise<void> {
  await crashWith(scope, queue, count)
  await crashWith(scope, queue, count, (from, most) => takeTogether(scope, from, most))
}

/** So many, or the one that came alone: while it is in hand, and before all else is settled, no other such one comes. */
async function takeTogether(
  scope: Scope,
  subscription: Subscription,
  count: number,
): Promise<readonly Delivery[]> {
  const taken: Delivery[] = []
  await scope.until(`${count} deliveries, or one alone`, async () => {
    taken.push(...(await scope.receive(subscription, count - taken.length)))
    return taken.length === count || taken.some(({ alone }) => alone)
  })
  return taken
}

/** So many, each settled before the next is asked for. */
async function takeInTurn(
  scope: Scope,
  subscription: Subscription,
  count: number,
): Promise<readonly Delivery[]> {
  const taken: Delivery[] = []
  await scope.until(`${count} deliveries in turn`, async () => {
    const came = await scope.receive(subscription, count)
    assertAllOk(await scope.settle(subscription, ...came.map(acked)))
    taken.push(...came)
    return taken.length >= count
  })
  assert.equal(taken.length, count)
  return taken
}

async function oneSuspect(scope: Scope): Promise<[Subscription, Delivery]> {
  const name = await scope.queue()
  await scope.send(scope.near, name, scope.message())
  await crashTwiceWith(scope, name, 1)
  const subscription = await scope.subscribe(scope.far, name, { leaseMs: 60_000 })
  return [subscription, await scope.one(subscription)]
}

/** All of it are crashes, one or two: of the first handing out it may be unknown. */
function assertCrashed({ counted, crashes, records }: AttemptHistory): void {
  assert.ok(crashes === 1 || crashes === 2, `${crashes}`)
  assert.equal(counted, crashes)
  assert.equal(records.length, crashes)
  for (const { errorClass, code } of records) {
    assert.deepEqual([errorClass, code], ['crashed', CRASH_CODE])
  }
}

/** Of backends on which only a message that was handed out before is known to have killed its worker. */
export const repeatedCrashes: readonly Promised[] = [
  {
    title: 'Where only repeated crashes are counted, a first one is one counted attempt at most.',
    when,
    async keep(scope) {
      const name = await scope.queue()
      await scope.send(scope.near, name, scope.message(), scope.message())
      await crashWith(scope, name, 2)
      const subscription = await scope.subscribe(scope.far, name, { leaseMs: 60_000 })
      const back = await takeInTurn(scope, subscription, 2)
      for (const { history, alone } of back) {
        assert.ok(history.counted <= 1)
        assert.equal(history.crashes, history.counted)
        assert.equal(alone, history.counted === 1)
      }
    },
  },
  {
    title:
      'A message whose holder vanished twice comes back alone, with a counted attempt of class crashed.',
    when,
    async keep(scope) {
      const [, { history, alone }] = await oneSuspect(scope)
      assertCrashed(history)
      assert.equal(alone, true)
    },
  },
  {
    title: 'What the second holder that vanished had in hand comes one to a batch.',
    when,
    async keep(scope) {
      const { queue, near, far, message, send, subscribe, settle } = scope
      const name = await queue()
      const suspects = [message(), message(), message()]
      const others = [message(), message()]
      await send(near, name, ...suspects)
      await crashTwiceWith(scope, name, 3)
      await send(near, name, ...others)
      const subscription = await subscribe(far, name, { leaseMs: 60_000 })
      const back = new Set<string>()
      await scope.until('all suspects', async () => {
        const batch = await scope.receive(subscription, 8)
        if (batch.some((one) => one.alone)) assert.equal(batch.length, 1)
        for (const one of batch) {
          assert.equal(
            one.alone,
            suspects.some(({ id }) => id === one.envelope.id),
          )
          back.add(one.envelope.id)
        }
        assertAllOk(await settle(subscription, ...batch.map(acked)))
        return back.size === suspects.length + others.length
      })
    },
  },
  {
    title: 'A message that only waited is not blamed for the repeated crash of another.',
    when,
    async keep(scope) {
      const { queue, near, far, message, send, subscribe } = scope
      const name = await queue()
      const taken = message()
      await send(near, name, taken)
      await crashTwiceWith(scope, name, 1)
      const waiting = message()
      await send(near, name, waiting)
      const subscription = await subscribe(far, name, { leaseMs: 60_000 })
      const back = await takeInTurn(scope, subscription, 2)
      const innocent = back.find(({ envelope }) => envelope.id === waiting.id)
      assert.equal(innocent?.alone, false)
      assert.equal(innocent?.history.counted, 0)
    },
  },
  {
    title: 'A suspect that is alone and takes a second holder with it is blamed alone.',
    when,
    async keep(scope) {
      const { queue, near, far, message, send, connect, subscribeShortly, one } = scope
      const name = await queue()
      await send(near, name, message(), message(), message())
      await crashWith(scope, name, 3)
      let doomed = await connect()
      let [deadly] = await takeTogether(scope, await subscribeShortly(doomed, name), 3)
      if (deadly?.alone !== true) {
        await scope.vanish(doomed)
        await scope.leaseRunsOut()
        doomed = await connect()
        deadly = await alone(scope, await subscribeShortly(doomed, name))
      }
      const { crashes } = deadly.history
      await scope.vanish(doomed)
      await scope.leaseRunsOut()
      const subscription = await scope.subscribe(far, name, { leaseMs: 60_000 })
      for (let seen = 0; seen < 3; seen++) {
        const back = await one(subscription)
        const deaths: number = back.envelope.id === deadly.envelope.id ? crashes + 1 : crashes
        assert.equal(back.history.crashes, deaths, 'a neighbour was blamed')
        assert.equal(back.alone, true)
        assertAllOk(await scope.settle(subscription, acked(back)))
      }
    },
  },
  {
    title: 'A suspect of repeated crashes stays alone after an uncounted release.',
    when,
    async keep(scope) {
      const [subscription, suspect] = await oneSuspect(scope)
      assertAllOk(await scope.settle(subscription, released(suspect, { counted: false })))
      const again = await scope.one(subscription)
      assert.equal(again.alone, true)
      assert.deepEqual(again.history, suspect.history)
    },
  },
  {
    title: 'A suspect of repeated crashes that waited for a delay is alone when it comes back.',
    when,
    async keep(scope) {
      const [subscription, suspect] = await oneSuspect(scope)
      const act = released(suspect, { counted: false, delayMs: 200 })
      assertAllOk(await scope.settle(subscription, act))
      const again = await scope.one(subscription)
      assert.equal(again.alone, true)
      assert.deepEqual(again.history, suspect.history)
    },
  },
  {
    title: 'A counted release ends the suspicion of repeated crashes.',
    when,
    async keep(scope) {
      const [subscription, suspect] = await oneSuspect(scope)
      assertAllOk(await scope.settle(subscription, released(suspect, { counted: true })))
      const again = await scope.one(subscription)
      assert.equal(again.alone, false)
      assert.equal(again.history.counted, suspect.history.counted + 1)
      assert.equal(again.history.crashes, suspect.history.crashes)
    },
  },
  {
    title: 'Each repeated crash counts: a third one is remembered beside the second.',
    when,
    async keep(scope) {
      const { queue, near, far, message, send, successor, one } = scope
      const name = await queue()
      await send(near, name, message())
      await crashTwiceWith(scope, name, 1)
      const doomed = await scope.connect()
      const before = await one(await scope.subscribeShortly(doomed, name))
      await scope.vanish(doomed)
      await scope.leaseRunsOut()
      const { history, alone } = await one(await successor(far, name))
      assert.equal(history.crashes, before.history.crashes + 1)
      assert.equal(history.counted, before.history.counted + 1)
      assert.equal(history.records.length, before.history.records.length + 1)
      assert.equal(alone, true)
    },
  },
  {
    title: 'A holder that closes with suspects in hand has not vanished.',
    when,
    async keep(scope) {
      const { queue, near, far, message, send, connect, subscribe, successor } = scope
      const name = await queue()
      const both = [message(), message()]
      await send(near, name, ...both)
      await crashWith(scope, name, 2)
      const counts: number[] = []
      for (let times = 0; times < 2; times++) {
        const leaving = await subscribe(await connect(), name)
        const held = await takeTogether(scope, leaving, 2)
        counts.push(...held.map(({ history }) => history.counted))
        await leaving.close()
      }
      const back = await takeInTurn(scope, await successor(far, name), 2)
      assert.deepEqual(idsOf(back).toSorted(), both.map(({ id }) => id).toSorted())
      counts.push(...back.map(({ history }) => history.counted))
      assert.deepEqual(new Set(counts).size, 1, `${counts}`)
    },
  },
]
