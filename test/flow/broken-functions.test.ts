import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  createMillrace,
  defineQueue,
  type Logger,
  type MillraceOptions,
  PermanentError,
  type QueueOptions,
  silentLogger,
  TransientError,
} from 'millrace'
import { memory } from 'millrace/memory'
import { virtualClock } from 'millrace/testing'
import { z } from 'zod'
import { failureJudge } from '../../src/flow/failure-judge.ts'
import { closeNow, seeded } from '../runtime/stage.ts'

const payload = z.object({ n: z.number() })
type Choices = Partial<QueueOptions<typeof payload>>

async function stage(choices: Choices, options: Partial<MillraceOptions> = {}) {
  const clock = virtualClock()
  const retry = { attempts: 3, baseMs: 10, maxMs: 100 }
  const calls = defineQueue({ name: 'calls', owner: 'team-flow', payload, retry, ...choices })
  const warnings: string[] = []
  const app = await createMillrace({
    transport: memory(),
    queues: [calls],
    clock,
    random: seeded(5),
    logger: { ...silentLogger, warn: (line) => void warnings.push(line) },
    ...options,
  })
  let error: Error = new TransientError('503')
  app.work(calls, () => {
    throw error
  })
  await app.start()
  const fails = (next: Error): void => {
    error = next
  }
  return { app, calls, clock, warnings, fails, close: () => closeNow(app, clock) }
}

const answers: readonly (readonly [string, () => unknown, RegExp])[] = [
  [
    'throws',
    () => {
      throw new TypeError('no such field')
    },
    /^queue "calls": its breaker.isFailure threw \(no such field\) and is ignored, the default/,
  ],
  ['gives undefined', () => undefined, /breaker.isFailure gave undefined and is ignored/],
  ['gives a text', () => 'no', /breaker.isFailure gave "no" and is ignored/],
  [
    'gives a promise that fails',
    () => Promise.reject(new Error('later')),
    /breaker.isFailure gave a promise \(it must answer at once\) and is ignored/,
  ],
]

for (const [what, isFailure, warning] of answers) {
  test(`A breaker whose isFailure ${what} decides by the default, says so once, and costs no message.`, async () => {
    const { app, calls, clock, warnings, fails, close } = await stage({
      downstream: () => 'api',
      breaker: { isFailure: isFailure as () => boolean, minimum: 10 },
    })
    fails(new PermanentError('404'))
    await app.sendBatch(
      calls,
      Array.from({ length: 8 }, (_, n) => ({ n })),
    )
    await clock.advance(5_000)
    assert.equal((await app.admin.stats(calls)).dead, 8)
    assert.deepEqual(await app.admin.breakers.list(calls), [], 'none of them is the downstream’s')
    fails(new TransientError('503'))
    const { id } = await app.send(calls, { n: 9 })
    await app.sendBatch(
      calls,
      Array.from({ length: 19 }, (_, n) => ({ n: 10 + n })),
    )
    await clock.advance(2_000)
    assert.equal((await app.admin.breakers.list(calls))[0]?.phase, 'open')
    const message = await app.admin.messages.get(calls, id)
    assert.deepEqual(
      message?.attempts.map(({ errorClass }) => errorClass).filter((one) => one !== 'transient'),
      [],
    )
    assert.equal((await app.admin.stats(calls)).inFlight, 0)
    const said = warnings.filter((line) => line.includes('isFailure'))
    assert.equal(said.length, 1, said.join('\n'))
    assert.match(said[0] ?? '', warning)
    await close()
  })
}

test('That isFailure throws is said, and that it gives no boolean, once each; whatever it did to what it was shown, the default decides by what was', () => {
  const lines: string[] = []
  const logger = { ...silentLogger, warn: (line: string) => void lines.push(line) }
  const answers: readonly (() => unknown)[] = [
    () => {
      throw new Error('no')
    },
    () => 1,
    () => 'yes',
    () => {
      throw new Error('again')
    },
  ]
  let asked = 0
  const judge = failureJudge({
    queue: 'q',
    logger,
    isFailure: (failure) => {
      Object.assign(failure, { errorClass: 'permanent' })
      return answers[asked++]?.()
    },
  })
  for (const _ of answers) assert.equal(judge({ errorClass: 'transient', code: 'E' }), true)
  assert.deepEqual(
    lines.map((line) => /isFailure (threw|gave)/.exec(line)?.[1]),
    ['threw', 'gave'],
  )
})

test('What isFailure does to what it is shown changes nothing.', async () => {
  const { app, calls, clock, close } = await stage({
    downstream: () => 'api',
    breaker: {
      isFailure: (failure) => {
        Object.assign(failure, { errorClass: 'throttled', code: 'MINE', delayMs: 3_600_000 })
        return false
      },
    },
  })
  const { id } = await app.send(calls, { n: 1 })
  await clock.advance(5_000)
  const letter = await app.admin.deadLetters.show(calls, id)
  assert.deepEqual(
    letter?.attempts.map(({ errorClass, code }) => `${errorClass} ${code}`),
    Array.from({ length: 3 }, () => 'transient MILLRACE_TRANSIENT'),
  )
  await close()
})

type Broken = () => never
const functions: readonly (readonly [string, (broken: Broken) => Choices])[] = [
  ['classify', (classify) => ({ classify })],
  ['downstream', (downstream) => ({ downstream })],
  ['rateLimit.perKey.key', (key) => ({ rateLimit: { perKey: { key, perSecond: 9 } } })],
  ['concurrencyLimit.perKey.key', (key) => ({ concurrencyLimit: { perKey: { key, max: 9 } } })],
  ['breaker.isFailure', (isFailure) => ({ downstream: () => 'a', breaker: { isFailure } })],
]
const ways: readonly (readonly [string, () => unknown])[] = [
  [
    'throws',
    () => {
      throw new Error('broken')
    },
  ],
  ['answers with a promise that fails', () => Promise.reject(new Error('broken'))],
]

for (const [way, act] of ways) {
  // An unhandled rejection would end the process, and fails the test.
  for (const [what, choices] of functions) {
    test(`A message is settled whatever its queue’s functions do: ${what} ${way}.`, async () => {
      const { app, calls, clock, close } = await stage(choices(act as Broken))
      const { id } = await app.send(calls, { n: 1 })
      await clock.advance(5_000)
      const letter = await app.admin.deadLetters.show(calls, id)
      assert.ok(letter, 'it is a dead letter, and its lease did not run out')
      assert.notEqual(letter.errorClass, 'crashed')
      await close()
    })
  }

  test(`A message is settled whatever onDeadLetter and the logger do: each ${way}.`, async () => {
    const broken = act as Broken
    const logger: Logger = { debug: broken, info: broken, warn: broken, error: broken }
    const { app, calls, clock, close } = await stage({}, { onDeadLetter: broken, logger })
    const { id } = await app.send(calls, { n: 1 })
    await clock.advance(5_000)
    assert.ok(await app.admin.deadLetters.show(calls, id))
    await close()
  })

  test(`A payload is refused when a function of its queue ${way}: idempotencyKey, orderingKey, fairBy, fairWeight.`, async () => {
    const broken = act as Broken
    for (const choices of [
      { idempotencyKey: broken },
      { orderingKey: broken, onDead: 'continue' },
      { fairBy: broken },
      { fairBy: () => 'a', fairWeight: broken },
    ] satisfies Choices[]) {
      const { app, calls, close } = await stage(choices)
      await assert.rejects(app.send(calls, { n: 1 }), { code: 'MILLRACE_INVALID_PAYLOAD' })
      await close()
    }
  })
}
