import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { test } from 'node:test'
import { hasCode } from 'millrace'
import { signWebhook } from 'millrace/http'

const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'

test('signatures are those of the published convention', () => {
  // The example that Standard Webhooks libraries are tested with.
  const headers = signWebhook([secret], {
    id: 'msg_p5jXN8AQM9LWM0D4loKWxJek',
    at: 1_614_265_330_999,
    body: Buffer.from('{"test": 2432232314}'),
  })
  assert.deepEqual(headers, {
    'webhook-id': 'msg_p5jXN8AQM9LWM0D4loKWxJek',
    'webhook-timestamp': '1614265330',
    'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
  })
})

test('two secrets give two signatures, so that a secret can be changed without a gap', () => {
  const other = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
  const body = Buffer.from('x')
  const { 'webhook-signature': both } = signWebhook([secret, other], { id: 'a', at: 0, body })
  const mac = createHmac('sha256', Buffer.alloc(32, 7)).update('a.0.x').digest('base64')
  assert.equal(both?.split(' ').length, 2)
  assert.equal(both?.split(' ')[1], `v1,${mac}`)
})

test('a secret that is no secret is refused without being shown', () => {
  for (const bad of [
    '',
    'whsec_',
    'whsec_c2hvcnQ=',
    'not base64!',
    `whsec_${Buffer.alloc(65).toString('base64')}`,
  ]) {
    assert.throws(
      () => signWebhook([bad], { id: 'a', at: 0, body: Buffer.alloc(0) }),
      (error: Error) => {
        assert.ok(hasCode(error, 'MILLRACE_INVALID_OPTIONS'))
        return bad === '' || !error.message.includes(bad) || bad === 'whsec_'
      },
    )
  }
})
