import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { heap } from '../../../src/transports/memory/heap.ts'

interface Item {
  readonly value: number
  slot: number
}

test('A heap gives its items in order, whatever was pushed, popped and removed before.', () => {
  const act = fc.oneof(
    fc.record({ act: fc.constant('push' as const), value: fc.integer({ min: 0, max: 20 }) }),
    fc.record({ act: fc.constant('pop' as const) }),
    fc.record({ act: fc.constant('remove' as const), at: fc.nat(50) }),
  )
  fc.assert(
    fc.property(fc.array(act, { maxLength: 60 }), (acts) => {
      const subject = heap<Item>((a, b) => a.value < b.value)
      const model: Item[] = []
      for (const each of acts) {
        if (each.act === 'push') {
          const item = { value: each.value, slot: -1 }
          subject.push(item)
          model.push(item)
        } else if (each.act === 'pop') {
          const popped = subject.pop()
          assert.equal(popped?.value, model.map(({ value }) => value).sort((a, b) => a - b)[0])
          if (popped) model.splice(model.indexOf(popped), 1)
        } else if (model.length > 0) {
          const [item] = model.splice(each.at % model.length, 1)
          if (item) subject.remove(item)
        }
        assert.equal(subject.items.length, model.length)
        assert.ok(subject.items.every((item, at) => item.slot === at))
      }
      const rest: number[] = []
      for (let item = subject.pop(); item; item = subject.pop()) rest.push(item.value)
      assert.deepEqual(
        rest,
        model.map(({ value }) => value).sort((a, b) => a - b),
      )
    }),
  )
})

test('An item that is not in the heap cannot be removed from it.', () => {
  const subject = heap<Item>((a, b) => a.value < b.value)
  subject.push({ value: 1, slot: -1 })
  assert.throws(() => subject.remove({ value: 1, slot: 0 }), /not in this heap/)
})

test('A step costs a few comparisons, however long the backlog is.', () => {
  const size = 100_000
  let comparisons = 0
  const subject = heap<Item>((a, b) => {
    comparisons += 1
    return a.value < b.value
  })
  const items = Array.from({ length: size }, (_, at) => ({ value: (at * 7919) % size, slot: -1 }))
  for (const item of items) subject.push(item)
  comparisons = 0
  const steps = 1_000
  for (let step = 0; step < steps; step++) {
    const top = subject.pop()
    if (top) subject.push({ value: top.value + size, slot: -1 })
    const inside = items[size - 1 - step]
    if (inside && subject.items[inside.slot] === inside) subject.remove(inside)
  }
  const perStep = comparisons / steps
  assert.ok(perStep < 6 * Math.log2(size), `${perStep} comparisons for a pop, a push and a remove`)
})
