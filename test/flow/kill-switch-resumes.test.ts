import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { MillraceError } from 'millrace'
import { memoryStore, type StoreConnector } from 'millrace/store'
import { closeNow, stage } from '../runtime/stage.ts'

const DAY_MS = 86_400_000
const AWAY = new MillraceError('MILLRACE_UNAVAILABLE', 'the store is away')
const outdated = (found: number): MillraceError =>
  new MillraceError('MILLRACE_SCHEMA_OUTDATED', 'run millrace migrate', { fields: { found } })

/** A consumer that its kill switch will stop, and a store that fails for it as long as it is told. */
async function world(t: TestContext) {
  const server = memoryStore()
  const seen = { fails: undefined as unknown, asked: 0, forgotten: 0n, answer: Promise.resolve() }
  const store: StoreConnector = {
    ...server,
    connect: async (context) => {
      const real = await server.connect(context)
      const read: typeof real.states.read = async (name) => {
        seen.asked += 1
        await seen.answer
        if (seen.fails !== undefined) throw seen.fails
        const found = await real.states.read(name)
        const version = (found?.version ?? 0n) - seen.forgotten
        return found && version > 0n ? { ...found, version } : undefined
      }
      return { ...real, states: { ...real.states, read } }
    },
  }
  const scene = await stage({
    app: { store },
    queue: { retry: { attempts: 5, baseMs: 1_000, maxMs: 1_000 } },
  })
  const { app, clock, queue, open } = scene
  const handler = { broken: true }
  app.work(
    queue,
    async () => {
      await new Promise<void>((resolve) => clock.after(10, resolve))
      if (handler.broken) throw new TypeError('x is not a function')
    },
    { concurrency: 5, killSwitch: { failures: 4, resumeAfterMs: 3_600_000 } },
  )
  const send = () =>
    app.sendBatch(
      queue,
      Array.from({ length: 20 }, (_, i) => ({ orderId: `o-${i}` })),
    )
  /** As `millrace resume` does, on a machine whose clock is off. */
  const resume = async (aheadMs = 0): Promise<void> => {
    const own = { now: () => clock.now() + aheadMs, after: clock.after }
    const other = await open({ store: server, clock: own })
    await other.admin.resume(queue)
    await closeNow(other, clock)
  }
  const works = async (): Promise<boolean> => (await app.health()).ok
  t.after(() => closeNow(app, clock))
  return { ...scene, seen, handler, send, resume, works }
}

test('A resume that came while the stopped consumer could not ask is heard once it can.', async (t) => {
  const { app, clock, seen, handler, send, resume, works } = await world(t)
  seen.fails = AWAY
  await send()
  await app.start()
  await clock.advance(1_000)
  assert.equal(await works(), false)
  handler.broken = false
  await resume()
  await clock.advance(11_000)
  assert.equal(await works(), false)
  seen.fails = undefined
  await clock.advance(5_000)
  assert.equal(await works(), true)
})

test('A resume of before the stop is none of it, also where the consumer could not ask at first.', async (t) => {
  const { app, clock, queue, seen, handler, send, resume, works } = await world(t)
  await app.start()
  await resume()
  seen.fails = AWAY
  await send()
  await clock.advance(1_000)
  assert.equal(await works(), false)
  handler.broken = false
  const askedAway = seen.asked
  assert.ok(askedAway > 0)
  seen.fails = undefined
  await clock.advance(60_000)
  assert.ok(seen.asked > askedAway + 5)
  assert.equal(await works(), false)
  await resume()
  await clock.advance(5_000)
  assert.equal(await works(), true)
  assert.equal((await app.admin.stats(queue)).paused, false)
})

test('Without its tables nobody can have resumed: what is there once they are made counts, whatever clock wrote it.', async (t) => {
  const { app, clock, seen, handler, send, resume, works } = await world(t)
  seen.fails = outdated(0)
  await send()
  await app.start()
  await clock.advance(1_000)
  handler.broken = false
  await resume(-DAY_MS)
  seen.fails = undefined
  await clock.advance(5_000)
  assert.equal(await works(), true)
})

test('Tables of an older version may have had a resume before: its time decides.', async (t) => {
  const { app, clock, seen, handler, send, resume, works } = await world(t)
  await app.start()
  await resume()
  seen.fails = outdated(1)
  await send()
  await clock.advance(1_000)
  assert.equal(await works(), false)
  handler.broken = false
  seen.fails = undefined
  await clock.advance(11_000)
  assert.equal(await works(), false)
})

test('A resume by a machine whose clock is a day ahead lets a consumer go on once, not at each stop of that day.', async (t) => {
  const { app, clock, seen, send, resume, works } = await world(t)
  await app.start()
  await send()
  await clock.advance(1_000)
  assert.equal(await works(), false)
  await resume(DAY_MS)
  await clock.advance(30_000)
  const { asked } = seen
  assert.equal(await works(), false, 'it failed again')
  await clock.advance(30_000)
  assert.ok(seen.asked > asked + 2)
  assert.equal(await works(), false)
})

test('A store that lost what it knew, as Redis after a flush, lets nobody go on; a resume after that does.', async (t) => {
  const { app, clock, handler, send, resume, seen, works } = await world(t)
  await app.start()
  for (let i = 0; i < 3; i++) await resume()
  await send()
  await clock.advance(1_000)
  handler.broken = false
  // It has seen version 3; now they begin anew.
  seen.forgotten = 3n
  await clock.advance(11_000)
  assert.equal(await works(), false)
  await resume()
  await clock.advance(5_000)
  assert.equal(await works(), true)
})

test('A resume by a machine whose clock is behind is heard, also where the store was away since the stop.', async (t) => {
  const { app, clock, handler, send, resume, seen, works } = await world(t)
  await app.start()
  await send()
  await clock.advance(1_000)
  handler.broken = false
  seen.fails = AWAY
  await resume(-DAY_MS)
  await clock.advance(11_000)
  assert.equal(await works(), false)
  seen.fails = undefined
  await clock.advance(5_000)
  assert.equal(await works(), true)
})

test('A resume that was heard lets nobody go on at the next stop, also where the store was away meanwhile.', async (t) => {
  const { app, clock, handler, send, resume, seen, works } = await world(t)
  await app.start()
  await send()
  await clock.advance(1_000)
  handler.broken = false
  await resume(DAY_MS)
  await clock.advance(5_000)
  assert.equal(await works(), true)
  seen.fails = AWAY
  handler.broken = true
  await send()
  await clock.advance(11_000)
  assert.equal(await works(), false)
  handler.broken = false
  seen.fails = undefined
  await clock.advance(11_000)
  assert.equal(await works(), false)
})

test('A stopped consumer leaves no timer when its app closes, also while it asks the store.', async (t) => {
  for (const asks of [false, true]) {
    const { app, clock, send, seen, works } = await world(t)
    const gate = Promise.withResolvers<void>()
    if (asks) seen.answer = gate.promise
    await app.start()
    await send()
    await clock.advance(1_000)
    assert.equal(await works(), false)
    await closeNow(app, clock)
    gate.resolve()
    await clock.advance(0)
    assert.equal(clock.nextDueAt(), undefined)
  }
})
