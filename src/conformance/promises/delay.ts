import assert from 'node:assert/strict'
import { assertGauge, canBrowse, idsOf, longDelayMs, present } from '../acts.ts'
import type { Family, Subject } from '../promise.ts'

const delays = ({ traits }: Subject): boolean => traits.delay !== 'none'
const DELAY_MS = 600
const HOUR_MS = 3_600_000

export const delay: Family = {
  name: 'delay',
  promises: [
    {
      title: 'A delayed message arrives when its delay has passed and not before.',
      when: delays,
      async keep({ queue, near, far, message, send, subscribe, one, receive, now }) {
        const name = await queue()
        const sentAt = now()
        await send(near, name, message({ delayMs: DELAY_MS }))
        const subscription = await subscribe(far, name)
        // On a slow machine the delay may be over before anybody looks; early is what it must not be.
        if ((await receive(subscription)).length === 0) await one(subscription)
        assert.ok(now() - sentAt >= DELAY_MS - 20, `came after ${now() - sentAt} ms`)
      },
    },
    {
      title: 'A receive that waits is woken when a delayed message falls due.',
      when: delays,
      async keep({ queue, near, far, message, send, subscribe, settles, never }) {
        const name = await queue()
        const subscription = await subscribe(far, name)
        const waiting = subscription.receive({ max: 1, waitMs: 60_000, signal: never })
        const sent = message({ delayMs: 200 })
        await send(near, name, sent)
        assert.deepEqual(idsOf(await settles('the wake-up', waiting, 5_000)), [sent.id])
      },
    },
    {
      title: 'A message for a moment in the future waits for it.',
      when: delays,
      async keep({ queue, near, far, message, send, subscribe, one, receive, now }) {
        const name = await queue()
        const readyAt = now() + 800
        await send(near, name, message({ readyAt }))
        const subscription = await subscribe(far, name)
        if ((await receive(subscription)).length === 0) await one(subscription)
        assert.ok(now() >= readyAt - 20, `came ${readyAt - now()} ms early`)
      },
    },
    {
      title: 'A message for a moment in the past is ready at once.',
      when: delays,
      async keep({ queue, near, far, message, send, subscribe, one, now }) {
        const name = await queue()
        const sent = message({ readyAt: now() - HOUR_MS })
        await send(near, name, sent)
        assert.equal((await one(await subscribe(far, name))).envelope.id, sent.id)
      },
    },
    {
      title: 'A waiting message is seen as scheduled, with the moment when it is due.',
      when: (subject) => delays(subject) && canBrowse('get')(subject),
      async keep({ queue, near, far, message, send, now }) {
        const name = await queue()
        const readyAt = now() + HOUR_MS
        const [byMoment, byDelay] = [message({ readyAt }), message({ delayMs: HOUR_MS })]
        await send(near, name, byMoment, byDelay)
        const look = present(far.browse?.get)
        const exact = await look(name, byMoment.id)
        assert.equal(exact?.state, 'scheduled')
        assert.equal(exact?.readyAt, readyAt)
        const relative = present(await look(name, byDelay.id))
        assert.equal(relative.state, 'scheduled')
        assert.equal(relative.readyAt - relative.sentAt, HOUR_MS)
        assertGauge(await present(far.browse).gauge(name), { depth: 0, scheduled: 2 })
      },
    },
    {
      title: 'The longest delay that the transport states is stored as it is.',
      when: (subject) => delays(subject) && canBrowse('get')(subject),
      async keep({ queue, near, far, message, send, traits }) {
        const name = await queue()
        const delayMs = traits.delay === 'none' ? 0 : traits.delay.maxMs
        const sent = message({ delayMs })
        await send(near, name, sent)
        const stored = present(await present(far.browse?.get)(name, sent.id))
        assert.equal(stored.readyAt - stored.sentAt, delayMs)
      },
    },
    {
      title: 'A message that is due later does not hold up one that is due now.',
      when: delays,
      async keep({ queue, near, far, message, send, subscribe, one, traits }) {
        const name = await queue()
        const later = message({ delayMs: longDelayMs(traits) })
        const due = message()
        await send(near, name, later)
        await send(near, name, due)
        assert.equal((await one(await subscribe(far, name))).envelope.id, due.id)
      },
    },
  ],
}
