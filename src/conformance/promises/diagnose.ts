import assert from 'node:assert/strict'
import type { FaultCode } from '../../model/fault.ts'
import { acked, assertAllOk, codeOf, present } from '../acts.ts'
import type { Family } from '../promise.ts'

const codes: Record<FaultCode, true> = {
  lost: true,
  full: true,
  conflict: true,
  throttled: true,
  unavailable: true,
  held: true,
  notFound: true,
  denied: true,
  tooLarge: true,
  invalid: true,
  unknown: true,
}

export const diagnose: Family = {
  name: 'faults',
  promises: [
    {
      title: 'Whatever was thrown, diagnose names a fault and never throws itself.',
      async keep({ near }) {
        const cyclic: { self?: unknown } = {}
        cyclic.self = cyclic
        const thrown = [new Error('no'), new TypeError('x'), 'text', 7, null, undefined, cyclic]
        for (const error of thrown) {
          const fault = near.diagnose(error)
          assert.ok(codes[fault.code], `unknown code ${fault.code}`)
          assert.equal(typeof fault.retryable, 'boolean')
          assert.ok(fault.outcome === 'notApplied' || fault.outcome === 'unknown')
        }
      },
    },
    {
      title: 'A send whose signal has fired already stores nothing.',
      async keep({ queue, near, far, message, subscribe, receive }) {
        const name = await queue()
        await assert.rejects(near.send(name, [message()], { signal: AbortSignal.abort() }))
        assert.deepEqual(await receive(await subscribe(far, name)), [])
      },
    },
    {
      title: 'While the backend is away a send fails as unavailable, and works once it is back.',
      when: ({ harness }) => harness.outage !== undefined,
      async keep({ queue, near, far, message, subscribe, one, until, settles, never, harness }) {
        const name = await queue()
        const outage = present(harness.outage)
        const sent = message()
        await outage.cut()
        try {
          const attempt = near.send(name, [sent], { signal: never }).then(
            ([outcome]) => outcome && codeOf(outcome),
            (error: unknown) => near.diagnose(error).code,
          )
          assert.equal(await settles('the send', attempt, 60_000), 'unavailable')
        } finally {
          await outage.restore()
        }
        await until('the send after the outage', async () => {
          const outcomes = await near.send(name, [sent], { signal: never }).catch(() => [])
          return outcomes.some((outcome) => outcome.ok)
        })
        const subscription = await subscribe(far, name)
        assertAllOk(await subscription.settle([acked(await one(subscription))]))
      },
    },
  ],
}
