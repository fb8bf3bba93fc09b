import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { idMaker, isId, newId } from '../../src/model/ids.ts'
import { seeded } from '../runtime/stage.ts'

const UUID7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
const at = (ms: number) => ({ now: () => ms, after: () => () => undefined })

test('ids are UUIDs of version 7 that hold their time and sort by it', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 2 ** 48 - 1 }), fc.integer(), (ms, seed) => {
      const id = newId(at(ms), seeded(seed))
      assert.match(id, UUID7)
      assert.equal(Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16), ms)
      if (ms > 0) assert.ok(newId(at(ms - 1), seeded(seed + 1)) < id)
    }),
  )
})

test('a hundred thousand ids of one moment are a hundred thousand ids', () => {
  const random = seeded(1)
  const ids = new Set(Array.from({ length: 100_000 }, () => newId(at(1), random)))
  assert.equal(ids.size, 100_000)
})

test('ids of one maker grow with each one, however many come in one millisecond and wherever the clock goes', () => {
  const steps = fc.array(fc.integer({ min: -900, max: 3 }), { minLength: 1, maxLength: 50 })
  fc.assert(
    fc.property(
      fc.integer({ min: 1e6, max: 2 ** 47 }),
      steps,
      fc.integer(),
      (start, moves, seed) => {
        let now = start
        let newest = start
        const make = idMaker({ ...at(0), now: () => now }, seeded(seed))
        let last = make()
        for (const move of moves) {
          now = Math.max(newest - 900, now + move)
          newest = Math.max(newest, now)
          for (let i = 0; i < 100; i++) {
            const id = make(i % 3 === 2)
            assert.match(id, UUID7)
            assert.ok(last < id, `${last} comes before ${id}`)
            last = id
          }
        }
      },
    ),
    { numRuns: 50 },
  )
})

test('more ids than one millisecond has go on in the next, and a clock that was set back is followed', () => {
  let now = 5_000_000
  const make = idMaker({ ...at(0), now: () => now }, seeded(1))
  const ids = Array.from({ length: 20_000 }, () => make())
  assert.deepEqual(ids, [...new Set(ids)].sort())
  now = 1_000_000
  const hex = make().replaceAll('-', '').slice(0, 12)
  assert.equal(Number.parseInt(hex, 16), now)
})

test('an id of the moment of the one before grows without asking the clock', () => {
  let asked = 0
  const make = idMaker({ ...at(0), now: () => 7_000_000 + asked++ }, seeded(1))
  const ids = [make(), ...Array.from({ length: 10_000 }, () => make(true))]
  assert.equal(asked, 1)
  assert.deepEqual(ids, [...new Set(ids)].sort())
})

test('an id is 1 to 255 printable ASCII characters', () => {
  for (const good of ['a', '~', '!', 'x'.repeat(255)]) assert.equal(isId(good), true, good)
  for (const bad of ['', ' ', 'a b', 'é', '\u0000', '\u007f', 'x'.repeat(256)]) {
    assert.equal(isId(bad), false, JSON.stringify(bad))
  }
})
