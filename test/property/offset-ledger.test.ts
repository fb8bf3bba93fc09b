import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { NOTE_MAX, type OffsetLedger, openLedger } from '../../src/transport/offset-ledger.ts'

type Step =
  | { readonly as: 'take'; readonly gap: number }
  | { readonly as: 'done'; readonly which: number }
  | { readonly as: 'restart' }

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({ as: fc.constant('take' as const), gap: fc.nat({ max: 3 }) }),
  },
  { weight: 5, arbitrary: fc.record({ as: fc.constant('done' as const), which: fc.nat() }) },
  { weight: 1, arbitrary: fc.constant({ as: 'restart' as const }) },
)

/** A log with gaps, read by one holder after another, as the ledger's reader would. */
function reader(start: bigint) {
  const log: bigint[] = []
  const done = new Set<bigint>()
  let ledger: OffsetLedger = openLedger()
  let committed = { position: start, note: '' }
  let next = 0
  const inHand = new Set<bigint>()
  const hand = (offset: bigint): void => {
    const fresh = ledger.take(offset)
    assert.equal(fresh, !done.has(offset), `offset ${offset} was ${done.has(offset)} done`)
    if (fresh) inHand.add(offset)
  }
  return {
    log,
    done,
    ledger: () => ledger,
    /** Re-reads what is there before the log grows. */
    take(gap: number): void {
      if (next >= log.length) log.push((log.at(-1) ?? start - 1n) + 1n + BigInt(gap))
      hand(log[next] ?? 0n)
      next += 1
    },
    finish(which: number): void {
      const offset = [...inHand][which % Math.max(1, inHand.size)]
      if (offset === undefined) return
      inHand.delete(offset)
      done.add(offset)
      ledger.done(offset)
    },
    /** A holder that took nothing commits nothing. */
    restart(): void {
      const position = ledger.position() ?? committed.position
      committed = {
        position,
        note: ledger.position() === undefined ? committed.note : ledger.note(),
      }
      ledger = openLedger(committed.note)
      inHand.clear()
      next = log.filter((offset) => offset < position).length
    },
  }
}

test('The ledger never says too much and, within its bound, forgets nothing, whatever is done in whatever order and whoever goes on.', () => {
  fc.assert(
    fc.property(fc.bigInt(0n, 2n ** 40n), fc.array(step, { maxLength: 200 }), (start, steps) => {
      const run = reader(start)
      for (const each of steps) {
        if (each.as === 'take') run.take(each.gap)
        else if (each.as === 'done') run.finish(each.which)
        else run.restart()
        const position = run.ledger().position()
        if (position === undefined) continue
        for (const offset of run.log) if (offset < position) assert.ok(run.done.has(offset))
        assert.ok(run.ledger().note().length <= NOTE_MAX)
      }
    }),
    { verbose: true },
  )
})

test('The position is the first offset that is not done.', () => {
  const ledger = openLedger()
  assert.equal(ledger.position(), undefined)
  for (let offset = 5n; offset < 15n; offset++) assert.equal(ledger.take(offset), true)
  for (let offset = 6n; offset < 15n; offset++) ledger.done(offset)
  assert.equal(ledger.position(), 5n)
  assert.equal(ledger.note(), '1 5 1 9')
  ledger.done(5n)
  assert.equal(ledger.position(), 15n)
  assert.equal(ledger.note(), '')
})

test('What the note says is left out by the next holder, and nothing else.', () => {
  const ledger = openLedger('1 5 1 9')
  const taken = Array.from({ length: 12 }, (_, at) => ledger.take(5n + BigInt(at)))
  assert.deepEqual(taken, [true, ...Array(9).fill(false), true, true])
  assert.equal(ledger.position(), 5n)
})

test('An offset that exists no more does not hold up the position.', () => {
  const ledger = openLedger('1 5 2 9')
  assert.equal(ledger.take(40n), true)
  assert.equal(ledger.position(), 40n)
})

test('A note that does not fit leaves out what is furthest away, and stays within its bound.', () => {
  const ledger = openLedger()
  const count = 4_000
  for (let at = 0; at < count; at++) ledger.take(BigInt(at))
  for (let at = 1; at < count; at += 2) ledger.done(BigInt(at))
  const note = ledger.note()
  assert.ok(note.length <= NOTE_MAX && note.length > NOTE_MAX - 20)
  const next = openLedger(note)
  const again = Array.from({ length: count }, (_, at) => next.take(BigInt(at)))
  const known = again.lastIndexOf(false)
  assert.ok(known > 900, `known up to ${known}`)
  assert.ok(again.every((fresh, at) => fresh === (at % 2 === 0 || at > known)))
})

test('A note that is not ours counts as absent.', () => {
  for (const note of [
    '',
    'x',
    '2 5 1 9',
    '1 5 1',
    '1 5 -1 9',
    '1 5 1 9'.repeat(400),
    '1 zzzzzzzzzzzzz 1 1',
    '1 0 zzzzzz 1',
  ]) {
    assert.equal(openLedger(note).position(), undefined, note)
  }
})
