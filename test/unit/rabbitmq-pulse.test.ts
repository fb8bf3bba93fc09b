import assert from 'node:assert/strict'
import { test } from 'node:test'
import { virtualClock } from '../../src/testing/virtual-clock.ts'
import { heartbeatMsOf, startPulse } from '../../src/transports/rabbitmq/pulse.ts'

const HEARTBEAT_MS = 10_000

function pulse(ask: () => Promise<unknown>) {
  const clock = virtualClock()
  const overs: number[] = []
  const onOver = (ms: number): void => void overs.push(ms)
  return { clock, overs, pulse: startPulse({ ask, clock, heartbeatMs: HEARTBEAT_MS, onOver }) }
}

test('a broker that answers twice a heartbeat keeps the claims of its connection', async () => {
  let asked = 0
  const {
    clock,
    overs,
    pulse: started,
  } = pulse(async () => {
    asked += 1
  })
  for (let n = 0; n < 60; n++) {
    await clock.advance(1_000)
    assert.equal(started.isOver(), false)
  }
  assert.equal(asked, 13)
  assert.deepEqual(overs, [])
  started.stop()
})

test('claims are over before the two heartbeats of silence after which the broker may take them back', async () => {
  let answers = true
  const {
    clock,
    overs,
    pulse: started,
  } = pulse(async () => {
    if (!answers) throw new Error('the broker says nothing')
  })
  await clock.advance(5_000)
  answers = false
  await clock.advance(17_999)
  assert.equal(started.isOver(), false)
  await clock.advance(1)
  assert.equal(started.isOver(), true)
  assert.deepEqual(overs, [18_000])
  started.stop()
})

test('a question that was asked before the silence and is answered after it proves nothing', async () => {
  const answers: (() => void)[] = []
  const { clock, pulse: started } = pulse(
    () => new Promise<void>((resolve) => void answers.push(resolve)),
  )
  // As when a process is stopped: the answer lies in the socket when it wakes up.
  await clock.advance(18_000)
  answers[0]?.()
  await clock.advance(0)
  assert.equal(started.isOver(), true)
  started.stop()
})

test('an answer that lay there while the process stood still is followed at once by the next question', async () => {
  const answers: (() => void)[] = []
  const { clock, pulse: started } = pulse(
    () => new Promise<void>((resolve) => void answers.push(resolve)),
  )
  await clock.advance(16_000)
  answers[0]?.()
  await clock.advance(0)
  answers[1]?.()
  await clock.advance(17_000)
  assert.equal(started.isOver(), false)
  started.stop()
})

test('a pulse that was stopped asks nothing more', async () => {
  let asked = 0
  const { clock, pulse: started } = pulse(async () => {
    asked += 1
  })
  started.stop()
  await clock.advance(60_000)
  assert.equal(asked, 1)
  assert.equal(clock.nextDueAt(), undefined)
})

test('the heartbeat is the one that was agreed on, in seconds; without one there is none', () => {
  const of = (heartbeat: unknown): number | undefined => {
    const connection = { heartbeat, serverProperties: {} }
    return heartbeatMsOf({ connection })
  }
  assert.deepEqual(
    [of(10), of(1), of(0), of(undefined), of('10')],
    [10_000, 1_000, undefined, undefined, undefined],
  )
})
