import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inspect } from 'node:util'
import { createMillrace, defineQueue, hasCode, silentLogger } from 'millrace'
import { httpTarget, intake } from 'millrace/http'
import { memory } from 'millrace/memory'
import { sqlite } from 'millrace/sqlite'
import { memoryStore } from 'millrace/store'
import { closeNow, orderSchema, stage } from './stage.ts'

const base = { name: 'orders', owner: 'team', payload: orderSchema }
const key = (): string => 'k'

/** What a slip of JavaScript, a config file or an environment makes of an option. */
const ODD: readonly unknown[] = [
  ...[null, 5n, Symbol('odd'), Number.NaN, -1, '', 'odd', '\0', true],
  ...[[], [null], [5n], {}, { odd: null }, () => 'odd', new Date(Number.NaN)],
]

type Act = (options: Record<string, unknown>) => unknown

/** A function, what it needs, and its options. */
interface Taker {
  readonly what: string
  readonly act: Act
  readonly needs: Record<string, unknown>
  readonly names: string
}

function queueOptions(): readonly Taker[] {
  const define: Act = (given) => defineQueue(given as never)
  const within =
    (name: string, more: object = {}): Act =>
    (given) =>
      define({ ...base, ...more, [name]: given })
  const api = { downstream: key }
  const perKey =
    (name: string): Act =>
    (given) =>
      define({ ...base, [name]: { perKey: given } })
  const taker = (what: string, act: Act, names: string, needs = {}): Taker => ({
    ...{ what, act, needs, names },
  })
  return [
    taker('defineQueue', define, QUEUE, base),
    taker('retry', within('retry'), 'attempts baseMs maxMs jitter'),
    taker('dedupe', within('dedupe'), 'windowMs'),
    taker('capacity', within('capacity'), 'maxDepth whenFull waitMs shedTo'),
    taker('breaker', within('breaker', api), BREAKER),
    taker('gate', within('gate', api), 'startPerSecond stepMs'),
    taker('rateLimit', within('rateLimit'), 'perSecond burst perKey scope', { perSecond: 1 }),
    taker('rateLimit.perKey', perKey('rateLimit'), 'key perSecond burst', { key, perSecond: 1 }),
    taker('concurrencyLimit', within('concurrencyLimit'), 'max perKey scope', { max: 1 }),
    taker('concurrencyLimit.perKey', perKey('concurrencyLimit'), 'key max', { key, max: 1 }),
  ]
}

const QUEUE =
  'idempotencyKey orderingKey onDead delayed fairBy fairWeight capacity handlerTimeoutMs retry dedupe priorities ageingMs ' +
  'downstream breaker gate rateLimit concurrencyLimit classify codec name owner payload'
const BREAKER = 'failureShare minimum windowMs openMs openMaxMs scope isFailure'

function appOptions({ app, queue }: Awaited<ReturnType<typeof stage>>): readonly Taker[] {
  const create: Act = async (given) => (await createMillrace(given as never)).close()
  const letters = app.admin.deadLetters
  return [
    {
      what: 'createMillrace',
      act: create,
      needs: { transport: memory(), queues: [defineQueue(base)], logger: silentLogger },
      names:
        'transport store inbox outbox queues migrate signals clock random logger onDeadLetter redriveWindowMs claimCheck',
    },
    {
      what: 'send',
      act: (given) => app.send(queue, { orderId: 'o' }, given),
      needs: {},
      names: 'delayMs readyAt priority idempotencyKey dedupeKey orderingKey headers id signal',
    },
    {
      what: 'redrive',
      act: (given) => letters.redrive(queue, given as never),
      needs: { filter: {} },
      names: 'dryRun ratePerSecond force actor reason signal onProgress onFull filter',
    },
    {
      what: 'deadLetters.list',
      act: (given) => letters.list(queue, given),
      needs: {},
      names: 'errorClass limit',
    },
    {
      what: 'sqlite',
      act: (given) => void sqlite(given as never),
      needs: { file: 'never-opened.db' },
      names: 'synchronous pollMs',
    },
    {
      what: 'httpTarget',
      act: (given) => void httpTarget('https://x.example', given),
      needs: {},
      names:
        'method headers body timeoutMs secret allowPrivateAddresses redirects maxSockets lookup clock',
    },
    {
      what: 'intake',
      act: (given) => intake(app, given).close(),
      needs: {},
      names:
        'host port tokens queues maxBodyBytes requestTimeoutMs sendTimeoutMs maxConnections logger clock',
    },
  ]
}

/** What it was refused with; undefined when it was taken. */
async function refusal(act: () => unknown): Promise<unknown> {
  try {
    await act()
    return undefined
  } catch (error) {
    return error
  }
}

test('Whatever is given as an option is taken or refused as one, and null is refused by name.', async () => {
  const scene = await stage()
  for (const { what, act, needs, names } of [...queueOptions(), ...appOptions(scene)]) {
    assert.equal(await refusal(() => act(needs)), undefined, `${what} with what it needs`)
    for (const name of names.split(' ')) {
      for (const value of ODD) {
        const error = await refusal(() => act({ ...needs, [name]: value }))
        const at = `${what}: ${name} ${inspect(value)}: ${String(error)}`
        if (error !== undefined) {
          assert.ok(hasCode(error, 'MILLRACE_INVALID_OPTIONS'), at)
          assert.ok(!error.message.includes('\n'), at)
        }
        if (value !== null) continue
        assert.ok(error instanceof Error, at)
        assert.ok(error.message.includes(name), at)
        assert.ok(error.message.split('got null').length <= 2, `said twice: ${at}`)
      }
    }
  }
  await closeNow(scene.app, scene.clock)
})

test('An option that is undefined is left out.', async () => {
  const queue = defineQueue({ ...base, retry: undefined, rateLimit: undefined } as never)
  const app = await createMillrace({
    ...{ transport: memory(), store: memoryStore(), queues: [queue], logger: silentLogger },
    migrate: undefined,
  } as never)
  await app.close()
})

test('The cursor of the last page is null and goes back in as it came; a tx that is null is refused as none', async () => {
  const { app, clock, queue } = await stage()
  const { cursor } = await app.admin.deadLetters.list(queue)
  assert.equal(cursor, null)
  assert.deepEqual(await app.admin.deadLetters.list(queue, { cursor }), { items: [], cursor })
  assert.deepEqual(await app.admin.keys.list(queue, { cursor }), { items: [], cursor })
  const sent = refusal(() => app.send(queue, { orderId: 'o' }, { tx: null }))
  assert.ok(hasCode(await sent, 'MILLRACE_FOREIGN_TRANSACTION'), String(await sent))
  await closeNow(app, clock)
})
