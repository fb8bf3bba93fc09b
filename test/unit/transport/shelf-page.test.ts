import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { DeadLetter } from '../../../src/model/dead-letter.ts'
import { freshHistory } from '../../../src/model/history.ts'
import { PAGE_BYTES_MAX, pageOf, startOf } from '../../../src/transport/shelf-page.ts'

test('A page has a cursor only when more was found, and the next page begins there.', () => {
  const letters = [letter(3, 'b_b'), letter(3, 'a'), letter(1, 'c')]
  assert.deepEqual(pageOf(letters, 3), { items: letters, cursor: null })
  assert.deepEqual(pageOf([], 3), { items: [], cursor: null })
  const page = pageOf(letters, 1)
  assert.deepEqual(page.items, letters.slice(0, 1))
  assert.deepEqual(startOf({ cursor: page.cursor ?? '' }), { deadAt: 3, id: 'b_b' })
})

test('A page has 16 MiB of bodies at most, or one letter, and reads no further than that.', () => {
  const large = letter(3, 'a', new Uint8Array(PAGE_BYTES_MAX + 1))
  const half = letter(2, 'b', new Uint8Array(PAGE_BYTES_MAX / 2))
  let read = 0
  function* found() {
    for (const one of [large, half, half, half, half]) {
      read += 1
      yield one
    }
  }
  assert.deepEqual(pageOf(found(), 10).items, [large])
  assert.equal(read, 2)
  assert.deepEqual(pageOf([half, half, half], 10).items.length, 2)
  assert.deepEqual(pageOf([half, half], 10), { items: [half, half], cursor: null })
})

test('Without a cursor a page begins at the newest of all.', () => {
  const { deadAt, id } = startOf({})
  assert.ok(deadAt > 8_640_000_000_000_000)
  assert.ok(id > '~'.repeat(255))
})

test('What is no cursor is refused, and named.', () => {
  for (const cursor of ['', 'x', '_', '_id', 'x_id', 'Infinity_id', '1_a\0b']) {
    assert.throws(() => startOf({ cursor }), {
      code: 'MILLRACE_INVALID_OPTIONS',
      message: `dead letters: cursor: expected the cursor of a page before, got ${JSON.stringify(cursor)}`,
    })
  }
})

function letter(deadAt: number, id: string, body = new Uint8Array(0)): DeadLetter {
  return {
    envelope: { id, body, headers: {}, priority: 0 },
    queue: 'q',
    owner: 'o',
    errorClass: 'permanent',
    reason: 'r',
    history: freshHistory,
    sentAt: 0,
    deadAt,
  }
}
