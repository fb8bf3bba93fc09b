import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { assign, type Owning } from '../../src/transports/kafka/assign.ts'
import {
  readAssignment,
  readSubscription,
  writeAssignment,
  writeSubscription,
} from '../../src/transports/kafka/group-bytes.ts'
import { firstAdded } from '../../src/transports/kafka/share-out.ts'

/** Who comes and goes, one after the other; each time all join again until nothing moves. */
const changes = fc.array(fc.record({ joins: fc.boolean(), which: fc.nat({ max: 9 }) }), {
  maxLength: 30,
})

test('Partitions are shared out evenly, never have two holders, and whoever can keeps what it has.', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 24 }), changes, (partitions, steps) => {
      let members: readonly Owning[] = []
      for (const { joins, which } of steps) {
        const id = `member-${which}`
        const others = members.filter((member) => member.id !== id)
        members = joins ? [...others, { id, owned: [], generation: 0 }] : others
        if (members.length === 0) continue
        members = settle(partitions, members)
      }
    }),
    { verbose: true },
  )
})

/** A holder gives up what was taken from it and joins again, as the transport does. */
function settle(partitions: number, start: readonly Owning[]): readonly Owning[] {
  let members = start
  for (let generation = 1; generation <= 3; generation++) {
    const shares = assign(partitions, members)
    const given = [...shares.values()].flat()
    assert.equal(new Set(given).size, given.length, 'a partition with two holders')
    for (const { id, owned } of members) {
      for (const other of members) {
        if (other.id === id) continue
        const taken = owned.filter((partition) => shares.get(other.id)?.includes(partition))
        assert.deepEqual(taken, [], 'given away before its holder gave it up')
      }
    }
    members = members.map(({ id }) => ({ id, owned: shares.get(id) ?? [], generation }))
    if (given.length === partitions) break
  }
  const sizes = members.map(({ owned }) => owned.length)
  assert.equal(
    sizes.reduce((sum, size) => sum + size, 0),
    partitions,
  )
  assert.ok(Math.max(...sizes) - Math.min(...sizes) <= 1, `sizes ${sizes}`)
  const again = assign(partitions, members)
  for (const { id, owned } of members) {
    assert.deepEqual(again.get(id)?.toSorted(), owned.toSorted(), 'moved without need')
  }
  return members
}

test('Of two that claim one partition, the newer assignment counts.', () => {
  const shares = assign(1, [
    { id: 'a', owned: [0], generation: 3 },
    { id: 'b', owned: [0], generation: 4 },
  ])
  assert.deepEqual(
    [...shares],
    [
      ['a', []],
      ['b', [0]],
    ],
  )
})

test('What members tell each other comes back as it was.', () => {
  const lists = fc.dictionary(fc.stringMatching(/^[a-z.]{1,20}$/), fc.array(fc.nat()))
  const number = fc.option(fc.nat(), { nil: undefined })
  fc.assert(
    fc.property(lists, fc.nat(), number, (dictionary, generation, addedFrom) => {
      const partitions = new Map(Object.entries(dictionary))
      const said = { topics: [...partitions.keys()], owned: partitions, generation, addedFrom }
      assert.deepEqual(readSubscription(writeSubscription(said)), said)
      const given = { partitions, addedFrom }
      assert.deepEqual(readAssignment(writeAssignment(given)), given)
    }),
  )
  const nothing = { partitions: new Map(), addedFrom: undefined }
  assert.deepEqual(readAssignment(Buffer.alloc(0)), nothing)
})

test('Which partitions were added is what members remember, else what the positions say.', async () => {
  const asked = (...known: readonly number[]) => Promise.resolve(new Set(known))
  const never = () => assert.fail('the positions are not asked')
  assert.equal(await firstAdded(6, [4, 3], never), 3)
  assert.equal(await firstAdded(6, [], () => asked(0, 1, 2)), 3)
  // A group that never began, one that has begun with all, and one that has begun with some of them.
  assert.equal(await firstAdded(6, [], () => asked()), 6)
  assert.equal(await firstAdded(3, [], () => asked(2, 1, 0)), 3)
  assert.equal(await firstAdded(6, [], () => asked(0, 2, 4)), 6)
})
