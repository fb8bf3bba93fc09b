import assert from 'node:assert/strict'
import type { StoreFamily } from '../scope.ts'

const LEASE_MS = 60_000

export const leases: StoreFamily = {
  name: 'store: leases',
  promises: [
    {
      title: 'A lease that one holds no other gets.',
      async keep({ near, far, fresh }) {
        const name = fresh()
        const lease = await near.leases.acquire(name, 'one', LEASE_MS)
        assert.equal(lease?.holder, 'one')
        assert.equal(await far.leases.acquire(name, 'two', LEASE_MS), undefined)
        assert.ok(await far.leases.acquire(fresh(), 'two', LEASE_MS))
      },
    },
    {
      title: 'Who holds it gets it again with the same fence.',
      async keep({ near, far, fresh }) {
        const name = fresh()
        const lease = await near.leases.acquire(name, 'one', LEASE_MS)
        assert.deepEqual(await far.leases.acquire(name, 'one', LEASE_MS), lease)
      },
    },
    {
      title: 'A released lease is free at once; a release by who has lost it changes nothing.',
      async keep({ near, far, fresh }) {
        const name = fresh()
        const first = await near.leases.acquire(name, 'one', LEASE_MS)
        assert.ok(first)
        await near.leases.release(name, first)
        const second = await far.leases.acquire(name, 'two', LEASE_MS)
        assert.ok(second)
        await near.leases.release(name, first)
        await near.leases.release(name, { ...second, holder: 'one' })
        assert.equal(await near.leases.acquire(name, 'one', LEASE_MS), undefined)
        await far.leases.release(name, second)
        const third = await near.leases.acquire(name, 'one', LEASE_MS)
        assert.ok(third && third.fence > first.fence)
        // As a process does that was stopped and has the lease anew.
        await near.leases.release(name, first)
        assert.equal(await far.leases.acquire(name, 'two', LEASE_MS), undefined)
      },
    },
    {
      title: 'The fence grows with every new holder, also after the lease was free or has ended.',
      async keep({ near, far, fresh, harness, leaseRunsOut }) {
        const name = fresh()
        const fences: bigint[] = []
        const take = async (holder: string, leaseMs: number) => {
          const lease = await (fences.length % 2 === 0 ? near : far).leases.acquire(
            name,
            holder,
            leaseMs,
          )
          assert.ok(lease)
          assert.equal(typeof lease.fence, 'bigint')
          fences.push(lease.fence)
          return lease
        }
        await far.leases.release(name, await take('one', LEASE_MS))
        await far.leases.release(name, await take('one', LEASE_MS))
        await take('two', harness.leaseMs)
        await leaseRunsOut()
        await far.prune(1_000)
        await take('two', LEASE_MS)
        assert.deepEqual(fences, [...new Set(fences)].toSorted(byValue))
        assert.equal(fences.length, 4)
      },
    },
    {
      title: 'A renewed lease lasts longer; one that is not renewed ends.',
      async keep({ near, far, fresh, harness, leaseRunsOut }) {
        const [renewed, left] = [fresh(), fresh()]
        const lease = await near.leases.acquire(renewed, 'one', harness.leaseMs)
        await near.leases.acquire(left, 'one', harness.leaseMs)
        assert.ok(lease)
        assert.equal(await near.leases.renew(renewed, lease, LEASE_MS), true)
        await leaseRunsOut()
        assert.equal(await far.leases.acquire(renewed, 'two', LEASE_MS), undefined)
        assert.ok(await far.leases.acquire(left, 'two', LEASE_MS))
      },
    },
    {
      title: 'A lease that has ended, or is another’s, cannot be renewed.',
      async keep({ near, far, fresh, harness, leaseRunsOut }) {
        const name = fresh()
        const lease = await near.leases.acquire(name, 'one', harness.leaseMs)
        assert.ok(lease)
        assert.equal(await far.leases.renew(name, { ...lease, holder: 'two' }, LEASE_MS), false)
        const older = { ...lease, fence: lease.fence - 1n }
        assert.equal(await far.leases.renew(name, older, LEASE_MS), false)
        await leaseRunsOut()
        assert.equal(await near.leases.renew(name, lease, LEASE_MS), false)
        const again = await near.leases.acquire(name, 'one', LEASE_MS)
        assert.ok(again && again.fence > lease.fence)
      },
    },
    {
      title: 'Of twenty that ask for one lease at once, on two connections, exactly one gets it.',
      async keep({ near, far, fresh, settles }) {
        const name = fresh()
        let fence = 0n
        for (let round = 0; round < 5; round++) {
          const asks = Array.from({ length: 20 }, (_, at) =>
            (at % 2 === 0 ? near : far).leases.acquire(name, `h${at}`, LEASE_MS),
          )
          const got = (await settles('twenty asks', Promise.all(asks))).filter((one) => one)
          assert.equal(got.length, 1)
          const [lease] = got
          assert.ok(lease && lease.fence > fence)
          fence = lease.fence
          await far.leases.release(name, lease)
        }
      },
    },
  ],
}

function byValue(a: bigint, b: bigint): number {
  return a < b ? -1 : a > b ? 1 : 0
}
