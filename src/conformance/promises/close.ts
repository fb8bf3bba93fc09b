import assert from 'node:assert/strict'
import { acked, codeOf, idsOf } from '../acts.ts'
import type { Family } from '../promise.ts'

const CLOSE_WITHIN_MS = 5_000

export const close: Family = {
  name: 'close',
  promises: [
    {
      title: 'A transport and a subscription may be closed more than once.',
      async keep({ queue, connect, subscribe, settles }) {
        const transport = await connect()
        const subscription = await subscribe(transport, await queue())
        const closes = [
          subscription.close(),
          subscription.close(),
          transport.close(),
          transport.close(),
        ]
        await settles('all closes', Promise.all(closes), CLOSE_WITHIN_MS)
        await settles('one more close', subscription.close(), CLOSE_WITHIN_MS)
      },
    },
    {
      title: 'Closing a transport ends a receive that waits.',
      async keep({ queue, connect, subscribe, settles, passes, never }) {
        const transport = await connect()
        const subscription = await subscribe(transport, await queue())
        const waiting = subscription.receive({ max: 1, waitMs: 600_000, signal: never })
        const ended = waiting.catch(() => [])
        await passes(30)
        await settles('close', transport.close(), CLOSE_WITHIN_MS)
        assert.deepEqual(await settles('the receive', ended, CLOSE_WITHIN_MS), [])
      },
    },
    {
      title: 'Closing a subscription ends a receive that waits.',
      async keep({ queue, near, subscribe, settles, passes, never }) {
        const subscription = await subscribe(near, await queue())
        const waiting = subscription.receive({ max: 1, waitMs: 600_000, signal: never })
        const ended = waiting.catch(() => [])
        await passes(30)
        await settles('close', subscription.close(), CLOSE_WITHIN_MS)
        assert.deepEqual(await settles('the receive', ended, CLOSE_WITHIN_MS), [])
      },
    },
    {
      title: 'Closing one subscription leaves its neighbours on the same connection at work.',
      async keep({ queue, near, far, message, send, subscribe, one }) {
        const [red, blue] = [await queue(), await queue()]
        const closing = await subscribe(near, red)
        const staying = await subscribe(near, blue)
        await closing.close()
        const sent = message()
        await send(far, blue, sent)
        assert.equal((await one(staying)).envelope.id, sent.id)
      },
    },
    {
      title: 'A closing subscription releases what it holds, at once and uncounted.',
      when: ({ traits }) => traits.uncountedRelease && traits.keepsHistory,
      async keep({ queue, near, far, message, send, subscribe, take }) {
        const name = await queue()
        await send(near, name, message(), message())
        const subscription = await subscribe(near, name, { leaseMs: 600_000 })
        await take(subscription, 2)
        await subscription.close()
        const back = await take(await subscribe(far, name), 2)
        for (const { alone, history } of back) {
          assert.deepEqual([history.counted, history.crashes, alone], [0, 0, false])
        }
      },
    },
    {
      title: 'A closing subscription fires claim.lost before anybody else can receive.',
      async keep({ queue, near, far, message, send, subscribe, one, settles, passes, never }) {
        const name = await queue()
        const sent = message()
        await send(near, name, sent)
        const subscription = await subscribe(near, name, { leaseMs: 600_000 })
        const { claim } = await one(subscription)
        const events: string[] = []
        claim.lost.addEventListener('abort', () => events.push('lost'))
        const elsewhere = await subscribe(far, name)
        const waiting = elsewhere
          .receive({ max: 1, waitMs: 60_000, signal: never })
          .then((batch) => {
            events.push('received')
            return batch
          })
        await passes(30)
        await subscription.close()
        const back = await settles('the message at its next holder', waiting, 10_000)
        assert.deepEqual(idsOf(back), [sent.id])
        assert.deepEqual(events, ['lost', 'received'])
      },
    },
    {
      title: 'Closing a transport releases what its subscriptions hold.',
      when: ({ traits }) => traits.uncountedRelease,
      async keep({ queue, near, far, message, send, connect, subscribe, one }) {
        const name = await queue()
        const sent = message()
        await send(near, name, sent)
        const transport = await connect()
        const delivery = await one(await subscribe(transport, name, { leaseMs: 600_000 }))
        await transport.close()
        assert.equal(delivery.claim.lost.aborted, true)
        assert.equal((await one(await subscribe(far, name))).envelope.id, sent.id)
      },
    },
    {
      title: 'What was settled before the close stays settled.',
      async keep({ queue, near, far, message, send, subscribe, one, settle, receive }) {
        const name = await queue()
        await send(near, name, message())
        const subscription = await subscribe(near, name)
        await settle(subscription, acked(await one(subscription)))
        await subscription.close()
        assert.deepEqual(await receive(await subscribe(far, name)), [])
      },
    },
    {
      title: 'A closed transport sends nothing and says so.',
      async keep({ queue, connect, message, never, far, subscribe, receive }) {
        const name = await queue()
        const transport = await connect()
        await transport.close()
        const code = await transport.send(name, [message()], { signal: never }).then(
          ([sent]) => sent && codeOf(sent),
          (error: unknown) => transport.diagnose(error).code,
        )
        assert.equal(code, 'unavailable')
        assert.deepEqual(await receive(await subscribe(far, name)), [])
      },
    },
  ],
}
