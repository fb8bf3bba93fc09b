import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  type App,
  type Connector,
  createMillrace,
  defineQueue,
  hasCode,
  PermanentError,
  silentLogger,
  ThrottledError,
} from 'millrace'
import { memory } from 'millrace/memory'
import { z } from 'zod'
import { faulty } from '../../src/layers/faulty.ts'
import { type VirtualClock, virtualClock } from '../../src/testing/virtual-clock.ts'
import { byDepth } from '../depth.ts'
import { seeded } from '../runtime/stage.ts'

// The whole runtime on a virtual clock, over a transport that fails on purpose. One seed is one run:
// MILLRACE_SEED=… repeats it, MILLRACE_DEPTH=long runs many.
const seeds = process.env['MILLRACE_SEED']
  ? [Number(process.env['MILLRACE_SEED'])]
  : Array.from({ length: byDepth({ quick: 1, full: 8, long: 200 }) }, (_, n) => n + 1)

const MESSAGES = 120
const APPS = 3

const parcels = defineQueue({
  name: 'parcels',
  owner: 'team-simulation',
  payload: z.object({ n: z.number() }),
  handlerTimeoutMs: 2_000,
  retry: { attempts: 6, baseMs: 100, maxMs: 5_000 },
})

interface World {
  readonly clock: VirtualClock
  readonly random: () => number
  readonly store: ReturnType<typeof memory>
  readonly accepted: Set<string>
  readonly succeeded: Map<string, number>
  readonly starts: Map<string, number>
}

for (const seed of seeds) {
  test(`nothing accepted is lost, whatever fails (seed ${seed})`, async () => {
    const world = openWorld(seed)
    const apps: App[] = []
    for (let i = 0; i < APPS; i++) apps.push(await openApp(world))
    for (const app of apps) {
      work(app, world)
      await app.start()
    }
    const producing = produce(apps, world)
    for (let step = 0; step < 60; step++) {
      await world.clock.advance(1_000)
      if (step === 1) await replaceOne(apps, world)
    }
    await world.clock.advance(24 * 3_600_000)
    await producing
    await verdict(world)
    for (const app of apps) {
      const closed = app.close({ timeoutMs: 0 })
      await world.clock.advance(2_000)
      await closed
    }
  })
}

function openWorld(seed: number): World {
  return {
    clock: virtualClock(),
    random: seeded(seed),
    store: memory(),
    accepted: new Set(),
    succeeded: new Map(),
    starts: new Map(),
  }
}

function openApp(world: World): Promise<App> {
  const { clock, random, store } = world
  const rates = { rejected: 0.05, refused: 0.05, unanswered: 0.05, slow: 0.05 }
  const transport: Connector = {
    name: 'memory, failing on purpose',
    connect: async (context) => faulty({ random, clock, rates })(await store.connect(context)),
  }
  return createMillrace({ transport, queues: [parcels], clock, random, logger: silentLogger })
}

/** Sends until the backend says yes; an unknown outcome is sent again with the same id. */
async function produce(apps: readonly App[], world: World): Promise<void> {
  const { random, clock } = world
  for (let n = 0; n < MESSAGES; n++) {
    let id: string | undefined
    for (let done = false; !done; ) {
      const app = apps[Math.floor(random() * apps.length)] as App
      try {
        const sent = await app.send(parcels, { n }, id === undefined ? {} : { id })
        world.accepted.add(sent.id)
        done = true
      } catch (error) {
        assert.ok(
          ['MILLRACE_UNAVAILABLE', 'MILLRACE_OUTCOME_UNKNOWN', 'MILLRACE_CLOSED'].some((code) =>
            hasCode(error, code as 'MILLRACE_CLOSED'),
          ),
          String(error),
        )
        if (hasCode(error, 'MILLRACE_OUTCOME_UNKNOWN')) {
          id = String(error.fields.messageId)
        }
        await new Promise<void>((resolve) => clock.after(50, resolve))
      }
    }
  }
}

function work(app: App, world: World): void {
  const { random, clock } = world
  app.work(
    parcels,
    async (message, ctx) => {
      world.starts.set(message.id, (world.starts.get(message.id) ?? 0) + 1)
      assert.ok(message.attempt <= parcels.retry.attempts)
      const chance = random()
      await new Promise<void>((resolve) => clock.after(random() * 500, resolve))
      if (chance < 0.2) throw new Error('transient')
      if (chance < 0.25) throw new PermanentError('permanent')
      if (chance < 0.3) throw new ThrottledError('throttled', { retryAfterMs: 3_000 })
      if (chance < 0.33) await new Promise(() => undefined)
      if (!ctx.signal.aborted) {
        world.succeeded.set(message.id, (world.succeeded.get(message.id) ?? 0) + 1)
      }
    },
    { concurrency: 4 },
  )
}

/** A deploy in the middle: one app goes with what it holds, another comes. */
async function replaceOne(apps: App[], world: World): Promise<void> {
  const [gone] = apps.splice(0, 1)
  const closed = gone?.close({ timeoutMs: 100 })
  await world.clock.advance(3_000)
  await closed
  const next = await openApp(world)
  work(next, world)
  await next.start()
  apps.push(next)
}

/** Read through a connection without faults. */
async function verdict(world: World): Promise<void> {
  const { clock, store } = world
  const observer = await createMillrace({
    transport: store,
    queues: [parcels],
    clock,
    logger: silentLogger,
  })
  const { depth, scheduled, inFlight } = await observer.admin.stats(parcels)
  assert.deepEqual({ depth, scheduled, inFlight }, { depth: 0, scheduled: 0, inFlight: 0 })
  assert.equal(world.accepted.size, MESSAGES)
  for (const id of world.accepted) {
    const dead = await observer.admin.deadLetters.show(parcels, id)
    assert.ok(world.succeeded.has(id) || dead !== null, `message ${id} was accepted and is nowhere`)
  }
  await observer.close({ timeoutMs: 0 })
}
