import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type ErrorClass, hasCode } from 'millrace'
import { closeNow, stage } from './stage.ts'

const idsOf = (count: number): readonly string[] =>
  Array.from({ length: count }, (_, i) => `x-${i}`)

test('the administration refuses unknown and wrong options, says what it got, and moves nothing', async () => {
  const { app, clock, queue } = await stage({ queue: { retry: { attempts: 1 } } })
  app.work(queue, () => {
    throw new Error('no')
  })
  const { id } = await app.send(queue, { orderId: 'a' })
  await app.start()
  await clock.advance(1_000)
  const { list, redrive, discard, audit, show } = app.admin.deadLetters
  const { get, cancel } = app.admin.messages
  const all = { filter: {} }
  const wrong: readonly (readonly [
    (queue: never, what: never) => Promise<unknown>,
    unknown,
    string,
  ])[] = [
    [redrive, undefined, 'got undefined'],
    [redrive, null, 'got null'],
    [redrive, 'all', 'got "all"'],
    [redrive, {}, 'either ids or filter, got neither'],
    [redrive, { ids: [id], filter: {} }, 'either ids or filter, got both'],
    [redrive, { ids: [id], filter: { errorClas: 'crashed' } }, '"filter.errorClas", did you mean'],
    [redrive, { ids: 'x' }, 'ids: expected a list of message ids, got "x"'],
    [redrive, { ids: [id, 5] }, 'ids[1]: expected a message id, got 5'],
    [redrive, { filter: 5 }, 'filter: expected { errorClass, deadBefore }, got 5'],
    [redrive, { filter: [] }, 'filter: expected { errorClass, deadBefore }, got an empty list'],
    [redrive, { filter: { deadBefore: 'now' } }, 'filter.deadBefore: expected epoch ms, got "now"'],
    [redrive, { filter: { errorClass: 'odd' } }, 'filter.errorClass: expected one of'],
    [redrive, { ...all, dryrun: true }, '"dryrun", did you mean "dryRun"?'],
    [redrive, { ...all, dryRun: 'yes' }, 'dryRun: expected true or false, got "yes"'],
    [redrive, { ...all, force: 1 }, 'force: expected true or false, got 1'],
    [redrive, { ...all, ratePerSecond: 0 }, 'ratePerSecond: expected a number above 0'],
    [redrive, { ...all, ratePerSecond: 1_000_001 }, 'and up to 1000000, got 1000001'],
    [redrive, { ...all, reason: 5 }, 'reason: expected a text, got 5'],
    [redrive, { ...all, onFull: 5 }, 'onFull: expected a function, got 5'],
    [redrive, { ids: idsOf(10_001) }, 'ids: expected at most 10000 message ids, got 10001'],
    [redrive, { ...all, signal: 5 }, 'signal: expected an AbortSignal, got 5'],
    [redrive, { ...all, onProgress: 5, actor: 5 }, 'onProgress: expected a function, got 5'],
    [list, null, 'got null'],
    [list, { errorclass: 'crashed' }, '"errorclass", did you mean "errorClass"?'],
    [list, { errorClass: 'odd' }, 'got "odd"'],
    [list, { limit: 0 }, 'limit: expected an integer from 1 to 500, got 0'],
    [list, { limit: 501 }, 'limit: expected an integer from 1 to 500, got 501'],
    [list, { cursor: 5 }, 'cursor: expected the cursor of the page before, got 5'],
    [discard, undefined, 'got undefined'],
    [discard, { reason: 'old' }, 'ids: expected a list of message ids, got undefined'],
    [discard, { ids: [id], reason: '  ' }, 'got "  "'],
    [discard, { ids: [id], reason: 'old', force: true }, '"force"'],
    [discard, { ids: [id], reason: 'old', actor: 5 }, 'actor: expected a text, got 5'],
    [audit, { limit: 501 }, 'got 501'],
    [audit, { max: 5 }, '"max"'],
    [show, 5, 'id: expected a message id, got 5'],
    [get, undefined, 'id: expected a message id, got undefined'],
    [cancel, null, 'id: expected a message id, got null'],
  ]
  for (const [act, what, part] of wrong) {
    await assert.rejects(act(queue as never, what as never), (error: unknown) => {
      assert.ok(hasCode(error, 'MILLRACE_INVALID_OPTIONS'), `${part}: ${String(error)}`)
      assert.ok(String(error).includes(part), `${part} in ${String(error)}`)
      return true
    })
  }
  assert.equal((await app.admin.stats(queue)).dead, 1)
  const undefinedIsAbsent = { ids: undefined, filter: {}, dryRun: true } as never
  assert.equal((await redrive(queue, undefinedIsAbsent)).matched, 1)
  // What is at its bound is taken.
  const none = await redrive(queue, { ids: idsOf(10_000), dryRun: true, ratePerSecond: 1_000_000 })
  assert.deepEqual([none.matched, none.notFound.length], [0, 10_000])
  const listed = async (errorClass: ErrorClass): Promise<readonly string[]> =>
    (await list(queue, { errorClass, limit: 500, cursor: null })).items.map((one) => one.id)
  assert.deepEqual([await listed('transient'), await listed('permanent')], [[id], []])
  await closeNow(app, clock)
})
