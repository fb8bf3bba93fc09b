import assert from 'node:assert/strict'
import type { StoreFamily } from '../scope.ts'

export const states: StoreFamily = {
  name: 'store: states',
  promises: [
    {
      title: 'A state is made once, and read by all with its version.',
      async keep({ near, far, fresh }) {
        const name = fresh()
        assert.equal(await near.states.read(name), undefined)
        const version = await near.states.swap(name, undefined, '{"a":"ünï „€“"}')
        assert.equal(typeof version, 'bigint')
        assert.equal(await far.states.swap(name, undefined, 'late'), undefined)
        assert.deepEqual(await far.states.read(name), { value: '{"a":"ünï „€“"}', version })
      },
    },
    {
      title: 'A swap with the version that is there writes; with another it does not.',
      async keep({ near, far, fresh }) {
        const name = fresh()
        const one = await near.states.swap(name, undefined, '1')
        assert.ok(one !== undefined)
        const two = await far.states.swap(name, one, '2')
        assert.ok(two !== undefined && two > one)
        assert.equal(await near.states.swap(name, one, 'late'), undefined)
        assert.equal(await near.states.swap(name, two + 1n, 'early'), undefined)
        assert.equal(await near.states.swap(fresh(), one, 'nobody'), undefined)
        assert.deepEqual(await near.states.read(name), { value: '2', version: two })
        assert.equal(await near.states.swap(name, two, ''), two + 1n)
        assert.equal((await far.states.read(name))?.value, '')
      },
    },
    {
      title: 'Of twenty that swap one state at once, on two connections, exactly one does.',
      async keep({ near, far, fresh, settles }) {
        const name = fresh()
        let version: bigint | undefined
        for (let round = 0; round < 5; round++) {
          const swaps = Array.from({ length: 20 }, (_, at) =>
            (at % 2 === 0 ? near : far).states.swap(name, version, `${round} ${at}`),
          )
          const answers = await settles('twenty swaps', Promise.all(swaps))
          const winners = answers.filter((answer) => answer !== undefined)
          assert.equal(winners.length, 1)
          version = winners[0]
          const value = `${round} ${answers.findIndex((answer) => answer !== undefined)}`
          assert.deepEqual(await far.states.read(name), { value, version })
        }
      },
    },
    {
      title: 'Text that not every database keeps is refused.',
      async keep({ near, fresh }) {
        for (const value of ['\0', '\ud800', 'x'.repeat(1_000_001)]) {
          await assert.rejects(near.states.swap(fresh(), undefined, value), {
            code: 'MILLRACE_INVALID_OPTIONS',
          })
        }
      },
    },
  ],
}
