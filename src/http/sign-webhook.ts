import { createHmac } from 'node:crypto'
import { OptionsError } from '../model/errors.ts'

export interface WebhookToSign {
  readonly id: string
  /** Epoch ms. */
  readonly at: number
  readonly body: Uint8Array
}

/**
 * The three headers of the Standard Webhooks convention (standardwebhooks.com): `webhook-id`, `webhook-timestamp`, and
 * `webhook-signature` with one `v1` HMAC-SHA256 for each secret, so that a secret can be changed without a gap.
 * @param secrets `whsec_` followed by base64, as the convention writes them
 * @throws MILLRACE_INVALID_OPTIONS
 */
export function signWebhook(
  secrets: readonly string[],
  { id, at, body }: WebhookToSign,
): Readonly<Record<string, string>> {
  const timestamp = String(Math.floor(at / 1000))
  const signatures = secrets.map((secret) => {
    const mac = createHmac('sha256', secretBytes(secret)).update(`${id}.${timestamp}.`).update(body)
    return `v1,${mac.digest('base64')}`
  })
  return {
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    'webhook-signature': signatures.join(' '),
  }
}

const SECRET = /^(?:whsec_)?([A-Za-z0-9+/]+={0,2})$/
/** The convention asks for 24 to 64 bytes. */
const SECRET_MIN_BYTES = 24
const SECRET_MAX_BYTES = 64

/** @throws MILLRACE_INVALID_OPTIONS; the message never holds the secret. */
export function secretBytes(secret: string): Buffer {
  const bytes = Buffer.from(SECRET.exec(secret)?.[1] ?? '', 'base64')
  if (bytes.length >= SECRET_MIN_BYTES && bytes.length <= SECRET_MAX_BYTES) return bytes
  throw new OptionsError('webhook secret', [
    `expected whsec_ and the base64 of ${SECRET_MIN_BYTES} to ${SECRET_MAX_BYTES} bytes, got ${bytes.length} bytes`,
  ])
}
