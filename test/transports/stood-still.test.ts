import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { type TestContext, test } from 'node:test'
import {
  type Connector,
  createMillrace,
  defineQueue,
  hasCode,
  PermanentError,
  silentLogger,
  TransientError,
} from 'millrace'
import { sqliteInbox } from 'millrace/inbox'
import { kafka } from 'millrace/kafka'
import { rabbitmq } from 'millrace/rabbitmq'
import { memoryStore } from 'millrace/store'
import { z } from 'zod'
import { backendUrl } from '../backends.ts'
import { deleteLanes, freshName, withChannel } from './rabbitmq-subjects.ts'
import { until } from './until.ts'

const common = {
  owner: 'team-a',
  payload: z.string(),
  handlerTimeoutMs: 60_000,
  retry: { attempts: 3, baseMs: 20 },
  capacity: 'unbounded',
} as const

interface Place {
  readonly connector: (settings: object) => Connector
  /** With which the server may give a message away after a silence of a few seconds, and those seconds. */
  readonly impatient: object
  readonly stillMs: number
  /** A silence in which the server surely still counts us as alive, while our own bound is over. */
  readonly almost: { readonly settings: object; readonly stillMs: number }
  readonly remove: () => Promise<unknown>
  readonly isOrdered: boolean
}

function rabbitPlace(url: string, isOrdered: boolean): Place {
  const prefix = `${freshName('still')} `
  return {
    connector: (settings) => rabbitmq({ url, prefix, lanes: 2, delays: false, ...settings }),
    impatient: { heartbeatMs: 1_000 },
    stillMs: 3_500,
    // The broker gives up after two to three heartbeats.
    almost: { settings: { heartbeatMs: 2_000 }, stillMs: 3_700 },
    remove: () =>
      withChannel(url, async (channel) => {
        if (isOrdered) await deleteLanes(channel, `${prefix}slow`, 2)
        else await channel.deleteQueue(`${prefix}slow`)
      }),
    isOrdered,
  }
}

function kafkaPlace(brokers: string): Place {
  const prefix = `still-${process.pid}-${Date.now().toString(36)}-`
  return {
    connector: (settings) =>
      kafka({ brokers: brokers.split(','), prefix, partitions: 2, retry: 'hold', ...settings }),
    impatient: { sessionTimeoutMs: 1_500, heartbeatMs: 100 },
    stillMs: 3_000,
    // Whoever does not join within 5.2 s is left out; nobody else wants to join here, and the session is longer.
    almost: {
      settings: { sessionTimeoutMs: 20_000, heartbeatMs: 100, revokeDrainMs: 0 },
      stillMs: 5_000,
    },
    remove: async () => undefined,
    isOrdered: true,
  }
}

/** No timer fires and nothing is heard meanwhile, as when the process is stopped. */
function standStill(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}

interface Ran {
  readonly what: string
  readonly attempt: number
  readonly failure: unknown
}

/**
 * Two messages, of which the first one's handler stands still once before its effect; ends when all have their effect.
 * @param failure what it throws then, instead of making its effect
 */
async function workThrough(
  t: TestContext,
  place: Place,
  settings: object,
  stillMs: number,
  failure?: Error,
) {
  const slow = defineQueue({
    ...{ ...common, name: 'slow' },
    ...(place.isOrdered && { orderingKey: () => 'key', onDead: 'continue' }),
  })
  const db = new DatabaseSync(':memory:')
  db.exec('CREATE TABLE effect (of TEXT)')
  const app = await createMillrace({
    transport: place.connector(settings),
    store: memoryStore(),
    inbox: sqliteInbox({ db }),
    queues: [slow],
    logger: silentLogger,
  })
  t.after(async () => {
    await app.close()
    await place.remove()
    db.close()
  })
  const ran: Ran[] = []
  let stood = false
  app.work(slow, async ({ payload, attempt }, ctx) => {
    if (payload === 'first' && !stood) {
      stood = true
      standStill(stillMs)
      if (failure !== undefined) throw failure
    }
    const write = (tx: DatabaseSync): void =>
      void tx.prepare('INSERT INTO effect VALUES (?)').run(payload)
    const refused = await ctx.tx(write).catch((error: unknown) => error)
    ran.push({ what: payload, attempt, failure: refused })
    if (refused !== undefined) throw refused
  })
  // Nothing of ours is on its way when the process stands still.
  await app.sendBatch(slow, ['first', 'second'])
  await app.start()
  const effects = (): readonly string[] =>
    db
      .prepare('SELECT of FROM effect ORDER BY rowid')
      .all()
      .map((row) => String(row['of']))
  await until('both effects', () => effects().length >= 2, 30_000)
  await until('nothing is left', async () => {
    const { depth = 0 } = await app.admin.stats(slow)
    return depth === 0
  })
  const { dead } = await app.admin.stats(slow)
  return { ran, effects: effects(), dead }
}

const url = backendUrl('rabbitmq')
const brokers = backendUrl('kafka')
const places: readonly (readonly [string, () => Place])[] = [
  ...(url === undefined
    ? []
    : ([
        ['rabbitmq', () => rabbitPlace(url, false)],
        ['rabbitmq in order', () => rabbitPlace(url, true)],
      ] as const)),
  ...(brokers === undefined ? [] : ([['kafka', () => kafkaPlace(brokers)]] as const)),
]

for (const [name, placeOf] of places) {
  test(`on ${name}, a process that stood still past its session commits no effect before it hears of it, and goes on by itself`, async (t) => {
    const place = placeOf()
    const { ran, effects } = await workThrough(t, place, place.impatient, place.stillMs)
    const first = ran.filter(({ what }) => what === 'first')
    assert.ok(hasCode(first[0]?.failure, 'MILLRACE_LEASE_LOST'), String(first[0]?.failure))
    assert.deepEqual([...effects].sort(), ['first', 'second'])
    if (place.isOrdered) assert.deepEqual(effects, ['first', 'second'])
  })

  test(`on ${name}, what a process may no longer commit comes again, though the server had not given up waiting`, async (t) => {
    const place = placeOf()
    const { settings, stillMs } = place.almost
    const { ran, effects } = await workThrough(t, place, settings, stillMs)
    const first = ran.filter(({ what }) => what === 'first')
    assert.ok(hasCode(first[0]?.failure, 'MILLRACE_LEASE_LOST'), String(first[0]?.failure))
    assert.deepEqual([...effects].sort(), ['first', 'second'])
    if (place.isOrdered) assert.deepEqual(effects, ['first', 'second'])
  })

  for (const failure of [new PermanentError('no'), new TransientError('not now')]) {
    test(`on ${name}, ${failure.code} from a process that stood still past its session leaves no trace: others have the message`, async (t) => {
      const place = placeOf()
      const { impatient, stillMs } = place
      const { ran, effects, dead } = await workThrough(t, place, impatient, stillMs, failure)
      assert.deepEqual([dead ?? 0, [...effects].sort()], [0, ['first', 'second']])
      if (place.isOrdered) assert.deepEqual(effects, ['first', 'second'])
      const attempts = ran.filter(({ what }) => what === 'first').map(({ attempt }) => attempt)
      assert.deepEqual(attempts, [1])
    })
  }

  test(`on ${name}, an event loop that is busy for longer than a second loses nothing with the defaults`, async (t) => {
    const { ran, effects } = await workThrough(t, placeOf(), {}, 1_500)
    assert.deepEqual(
      ran.map(({ attempt, failure }) => [attempt, failure]),
      [
        [1, undefined],
        [1, undefined],
      ],
    )
    assert.deepEqual([...effects].sort(), ['first', 'second'])
  })
}
