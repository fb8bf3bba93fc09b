import assert from 'node:assert/strict'
import type { HeldSlot, SlotAnswer, SlotRequest } from '../../../store/slots.ts'
import type { StoreFamily } from '../scope.ts'

const LEASE_MS = 60_000
const TWO = { max: 2, maxPerKey: undefined }
const ONE_EACH = new Map([
  ['k', 1],
  ['l', 1],
])

function ask(...holders: readonly string[]): readonly SlotRequest[] {
  return holders.map((holder) => ({ holder, key: undefined }))
}

function askFor(key: string, ...holders: readonly string[]): readonly SlotRequest[] {
  return holders.map((holder) => ({ holder, key }))
}

/** `held`, or what was full. */
function brief(answers: readonly SlotAnswer[]): readonly string[] {
  return answers.map((one) => (one.as === 'held' ? 'held' : one.of))
}

function heldOf(holder: string, answer: SlotAnswer | undefined): HeldSlot {
  assert.ok(answer?.as === 'held', `${holder} got no slot`)
  return { holder, fence: answer.fence }
}

export const slots: StoreFamily = {
  name: 'store: slots',
  promises: [
    {
      title: 'Of a pool no more slots are held at a time than its limit; each has its own fence.',
      async keep({ near, far, fresh }) {
        const pool = fresh()
        const [one] = await near.slots.acquire(pool, TWO, ask('a'), LEASE_MS)
        const more = await far.slots.acquire(pool, TWO, ask('b', 'c'), LEASE_MS)
        assert.deepEqual(brief(more), ['held', 'pool'])
        assert.ok(heldOf('b', more[0]).fence > heldOf('a', one).fence)
        const other = await far.slots.acquire(fresh(), TWO, ask('c'), LEASE_MS)
        assert.deepEqual(brief(other), ['held'], 'other pools have their own')
      },
    },
    {
      title: 'Of a key no more are held than its limit, whatever room the pool has.',
      async keep({ near, far, fresh }) {
        const pool = fresh()
        const limits = { max: 3, maxPerKey: 1 }
        const batch = [...askFor('k', 'a', 'b'), ...askFor('l', 'c'), ...ask('d', 'e')]
        const answers = await near.slots.acquire(pool, limits, batch, LEASE_MS)
        assert.deepEqual(brief(answers), ['held', 'key', 'held', 'held', 'pool'])
        const later = await far.slots.acquire(pool, limits, askFor('k', 'b'), LEASE_MS)
        assert.deepEqual(brief(later), ['key'], 'the key is full, and so is the pool')
        const { held, keys } = await far.slots.count(pool, 10)
        assert.equal(held, 3)
        assert.deepEqual(new Map(keys.map((one) => [one.key, one.held])), ONE_EACH)
        const [most] = (await far.slots.count(pool, 1)).keys
        assert.equal(most?.held, 1)
        const uneven = fresh()
        const none = { max: undefined, maxPerKey: undefined }
        const holders = [...askFor('k', 'a'), ...askFor('l', 'b', 'c'), ...askFor('m', 'd')]
        await near.slots.acquire(uneven, none, holders, LEASE_MS)
        const ofMost = (await far.slots.count(uneven, 1)).keys
        assert.deepEqual(ofMost, [{ key: 'l', held: 2 }], 'the key with the most slots comes first')
      },
    },
    {
      title: 'Who holds a slot gets it again with the same fence, also when all are held.',
      async keep({ near, far, fresh, harness, leaseRunsOut }) {
        const pool = fresh()
        const limits = { max: 1, maxPerKey: 1 }
        const first = await near.slots.acquire(pool, limits, askFor('k', 'a'), harness.leaseMs)
        assert.deepEqual(await far.slots.acquire(pool, limits, askFor('k', 'a', 'b'), LEASE_MS), [
          first[0],
          { as: 'full', of: 'key' },
        ])
        // It lasts from then on.
        await leaseRunsOut()
        const later = await near.slots.acquire(pool, limits, askFor('k', 'b'), LEASE_MS)
        assert.deepEqual(brief(later), ['key'])
        assert.equal((await near.slots.count(pool, 1)).held, 1)
      },
    },
    {
      title: 'A released slot is free at once; a release by who has lost it changes nothing.',
      async keep({ near, far, fresh }) {
        const pool = fresh()
        const limits = { max: 1, maxPerKey: 1 }
        const lost = heldOf(
          'a',
          (await near.slots.acquire(pool, limits, askFor('k', 'a'), LEASE_MS))[0],
        )
        await near.slots.release(pool, [lost])
        await far.slots.release(pool, [lost])
        const again = await far.slots.acquire(pool, limits, askFor('k', 'a'), LEASE_MS)
        assert.ok(heldOf('a', again[0]).fence > lost.fence)
        await near.slots.release(pool, [lost, { holder: 'nobody', fence: 1n }])
        const next = await near.slots.acquire(pool, limits, askFor('k', 'b'), LEASE_MS)
        assert.deepEqual(brief(next), ['key'])
        assert.deepEqual(await far.slots.count(pool, 1), {
          held: 1,
          keys: [{ key: 'k', held: 1 }],
        })
      },
    },
    {
      title:
        'A slot that is not renewed ends, and another gets it with a larger fence; one that is renewed stays.',
      async keep({ near, far, fresh, harness, leaseRunsOut }) {
        const pool = fresh()
        const limits = { max: 2, maxPerKey: 1 }
        const batch = [...askFor('k', 'a'), ...askFor('l', 'b')]
        const answers = await near.slots.acquire(pool, limits, batch, harness.leaseMs)
        const [dies, lives] = [heldOf('a', answers[0]), heldOf('b', answers[1])]
        assert.deepEqual(await far.slots.renew(pool, [lives], LEASE_MS), [true])
        await leaseRunsOut()
        assert.deepEqual(await far.slots.count(pool, 5), {
          held: 1,
          keys: [{ key: 'l', held: 1 }],
        })
        const wanted = [...askFor('l', 'c'), ...askFor('k', 'd'), ...ask('e')]
        const next = await far.slots.acquire(pool, limits, wanted, LEASE_MS)
        assert.deepEqual(brief(next), ['key', 'held', 'pool'])
        assert.ok(heldOf('d', next[1]).fence > dies.fence)
      },
    },
    {
      title:
        'Who returns after its slot has ended learns it, and neither renews nor frees another’s.',
      async keep({ near, far, fresh, harness, leaseRunsOut }) {
        const pool = fresh()
        const limits = { max: 1, maxPerKey: 1 }
        const [answer] = await near.slots.acquire(pool, limits, askFor('k', 'a'), harness.leaseMs)
        const zombie = heldOf('a', answer)
        await leaseRunsOut()
        const [free] = await near.slots.renew(pool, [zombie], LEASE_MS)
        assert.equal(free, false, 'also while nobody has taken it')
        const next = heldOf(
          'b',
          (await far.slots.acquire(pool, limits, askFor('k', 'b'), LEASE_MS))[0],
        )
        const forged = { ...next, fence: zombie.fence }
        const renewed = await near.slots.renew(pool, [zombie, next, forged], LEASE_MS)
        assert.deepEqual(renewed, [false, true, false])
        await near.slots.release(pool, [zombie, forged])
        const refused = await near.slots.acquire(pool, limits, askFor('k', 'a'), LEASE_MS)
        assert.deepEqual(brief(refused), ['key'])
      },
    },
    {
      title:
        'What many ask for at once, on two connections, is never given to more than may have it.',
      async keep({ near, far, fresh, settles }) {
        const pool = fresh()
        const limits = { max: 7, maxPerKey: 3 }
        let last = 0n
        for (let round = 0; round < 4; round++) {
          const asks = Array.from({ length: 20 }, (_, at) => {
            const batch = askFor(`k${at % 3}`, `${round} ${at} a`, `${round} ${at} b`)
            const { slots: side } = at % 2 === 0 ? near : far
            return side
              .acquire(pool, limits, batch, LEASE_MS)
              .then((answers) => answers.map((answer, i) => ({ ...batch[i], answer })))
          })
          const all = (await settles('twenty asks', Promise.all(asks))).flat()
          const held = all.filter(({ answer }) => answer.as === 'held')
          assert.equal(held.length, 7)
          for (const key of ['k0', 'k1', 'k2']) {
            assert.ok(held.filter((one) => one.key === key).length <= 3)
          }
          const given = held.map(({ holder = '', answer }) => heldOf(holder, answer))
          const fences = given.map(({ fence }) => fence)
          assert.equal(new Set(fences).size, 7)
          assert.ok(fences.every((fence) => fence > last))
          for (const fence of fences) if (fence > last) last = fence
          await far.slots.release(pool, given)
        }
        assert.deepEqual(await near.slots.count(pool, 5), { held: 0, keys: [] })
      },
    },
    {
      title: 'A smaller limit takes no slot away and gives none until enough are free.',
      async keep({ near, far, fresh }) {
        const pool = fresh()
        const answers = await near.slots.acquire(pool, TWO, ask('a', 'b'), LEASE_MS)
        const one = { max: 1, maxPerKey: undefined }
        assert.deepEqual(brief(await far.slots.acquire(pool, one, ask('c'), LEASE_MS)), ['pool'])
        const [a, b] = [heldOf('a', answers[0]), heldOf('b', answers[1])]
        assert.deepEqual(await far.slots.renew(pool, [a, b], LEASE_MS), [true, true])
        await near.slots.release(pool, [a])
        assert.deepEqual(brief(await far.slots.acquire(pool, one, ask('c'), LEASE_MS)), ['pool'])
        await near.slots.release(pool, [b])
        assert.deepEqual(brief(await far.slots.acquire(pool, one, ask('c'), LEASE_MS)), ['held'])
        const none = { max: undefined, maxPerKey: undefined }
        assert.deepEqual(brief(await far.slots.acquire(pool, none, ask('d', 'e'), LEASE_MS)), [
          'held',
          'held',
        ])
      },
    },
  ],
}
