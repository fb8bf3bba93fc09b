import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { latestOnly, reorder } from 'millrace/versions'
import {
  clients,
  message,
  messageOf,
  openVersions,
  rowOf,
  run,
  type Step,
  steps,
  type VersionsBench,
} from './versions-subjects.ts'

const ENTITIES = 3
const VERSIONS = 8
const all = Array.from({ length: ENTITIES * VERSIONS }, (_, at) => ({
  entity: at % ENTITIES,
  version: 1 + Math.floor(at / ENTITIES),
}))
/** Every step at least once, some twice, in any order. */
const arrivals = fc
  .tuple(fc.shuffledSubarray(all, { minLength: all.length }), fc.subarray(all), fc.nat())
  .map(([order, again, at]) => [...order.slice(0, at), ...again, ...order.slice(at)])

for (const { name, open } of clients) {
  test(`${name}: latestOnly: whatever the order, the newest version of each key stays`, async () => {
    const bench = await openVersions(open)
    const newest = newestIn(bench)
    await property(async (order) => {
      await Promise.all(
        order.map((step) =>
          run(
            bench,
            newest(messageOf(step), (tx) => bench.subject.execute(tx, ifNewer(bench, step))),
          ),
        ),
      )
      const effects = await bench.subject.effects()
      assert.ok(!effects.includes(-1), 'one was applied that was not newer')
      const last = order.filter(({ version }) => version === VERSIONS)
      assert.ok(
        last.every((step) => effects.includes(rowOf(step))),
        'the newest was applied',
      )
    })
    await bench.dispose()
  })

  test(`${name}: reorder: whatever the order, every step is applied once and after those before it`, async () => {
    const bench = await openVersions(open)
    const inOrder = sortedIn(bench)
    const expected = new Set<number>()
    await property(async (order) => {
      const effect = (tx: unknown, step: Step) =>
        bench.subject.execute(tx, afterAllBefore(bench, step))
      await Promise.all(order.map((step) => run(bench, inOrder(messageOf(step), effect))))
      for (const step of order) expected.add(rowOf(step))
      assert.deepEqual(
        await bench.subject.effects(),
        [...expected].sort((a, b) => a - b),
      )
      assert.deepEqual(await run(bench, (tx) => inOrder.gaps(tx)), [])
    })
    await bench.dispose()
  })

  test(`${name}: what an effect throws leaves no version behind`, async () => {
    const bench = await openVersions(open)
    const [newest, inOrder] = [newestIn(bench), sortedIn(bench)]
    const fails = (): never => {
      throw new Error('no')
    }
    await run(
      bench,
      inOrder(message(1, 2), () => assert.fail('too early')),
    )
    await assert.rejects(run(bench, newest(message(1, 1), fails)), /no/)
    await assert.rejects(run(bench, inOrder(message(1, 1), fails)), /no/)
    assert.deepEqual(
      await run(
        bench,
        newest(message(1, 1), () => 'done'),
      ),
      {
        applied: true,
        value: 'done',
      },
    )
    assert.deepEqual(
      await run(
        bench,
        inOrder(message(1, 1), () => {}),
      ),
      { applied: 2, waits: false },
    )
    await bench.dispose()
  })

  test(`${name}: reorder: a gap is listed, and given up by hand; no more wait than may`, async () => {
    const bench = await openVersions(open)
    const inOrder = sortedIn(bench, 3)
    const applied: number[] = []
    const effect = (_tx: unknown, { version }: Step): void => void applied.push(version)
    const arrive = (version: number) => run(bench, inOrder(message(1, version), effect))
    for (const version of [3, 4, 6, 4]) {
      assert.deepEqual(await arrive(version), { applied: 0, waits: true })
    }
    await assert.rejects(arrive(7), { code: 'MILLRACE_REORDER_FULL', retryable: true })
    const gap = { key: '1', next: 1n, waiting: 3, lowest: 3n, sentAt: 1_003 }
    assert.deepEqual(await run(bench, (tx) => inOrder.gaps(tx)), [gap])
    assert.equal(await run(bench, (tx) => inOrder.skip(tx, '1', effect)), 2)
    assert.deepEqual(applied, [3, 4])
    assert.deepEqual(await arrive(2), { applied: 0, waits: false })
    assert.deepEqual(await arrive(5), { applied: 2, waits: false })
    assert.deepEqual(applied, [3, 4, 5, 6])
    assert.equal(await run(bench, (tx) => inOrder.skip(tx, '1', effect)), 0)
    assert.deepEqual(await arrive(7), { applied: 1, waits: false })
    await bench.dispose()
  })

  test(`${name}: versions of 64 bits and keys of any text`, async () => {
    const bench = await openVersions(open)
    const huge = latestOnly({
      queue: steps,
      key: () => `a'"\0\ud800${'x'.repeat(300)}`,
      version: ({ version }) => 2n ** 63n - 1n - BigInt(version),
      schema: bench.schema,
    })
    const tries = [2, 1, 2, 0, 1]
    const outcomes: boolean[] = []
    for (const version of tries) {
      outcomes.push(
        (
          await run(
            bench,
            huge(message(1, version), () => {}),
          )
        ).applied,
      )
    }
    assert.deepEqual(outcomes, [true, true, false, true, false])
    await bench.dispose()
  })
}

function newestIn({ schema }: VersionsBench) {
  const key = ({ entity }: Step): string => String(entity)
  return latestOnly({ queue: steps, key, version: (step) => step.version, schema })
}

function sortedIn({ schema }: VersionsBench, maxWaiting = 100) {
  const key = ({ entity }: Step): string => String(entity)
  return reorder({ queue: steps, key, version: (step) => step.version, maxWaiting, schema })
}

function ofEntity(entity: number): string {
  return `n BETWEEN ${entity * 1_000} AND ${entity * 1_000 + 999}`
}

/** One row for each version that was applied; -1 when it was not newer than all before. */
function ifNewer({ table }: VersionsBench, step: Step): string {
  const newer = `EXISTS (SELECT 1 FROM ${table} WHERE ${ofEntity(step.entity)} AND n >= ${rowOf(step)})`
  return `INSERT INTO ${table} SELECT CASE WHEN ${newer} THEN -1 ELSE ${rowOf(step)} END`
}

/** One row, and only when exactly those before it are there. */
function afterAllBefore({ table }: VersionsBench, step: Step): string {
  const before = `(SELECT count(*) FROM ${table} WHERE ${ofEntity(step.entity)} AND n < ${rowOf(step)})`
  return `INSERT INTO ${table} SELECT ${rowOf(step)} WHERE ${before} = ${step.version - 1}`
}

/** Each run has entities of its own. */
async function property(holds: (order: readonly Step[]) => Promise<void>): Promise<void> {
  let runs = 0
  const fresh = async (order: readonly Step[]): Promise<void> => {
    const base = ENTITIES * runs++
    await holds(order.map(({ entity, version }) => ({ entity: base + entity, version })))
  }
  await fc.assert(fc.asyncProperty(arrivals, fresh), { numRuns: 4, endOnFailure: true })
}
