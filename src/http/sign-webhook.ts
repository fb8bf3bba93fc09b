import { createHmac } from 'node:crypto'
import { OptionsError } from '../model/errors.ts'
import { show } from '../model/problems.ts'

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

/** What is wrong with a secret, without showing it; never `secret: …`, which redaction would cut. */
export function secretProblem(secret: unknown): string | undefined {
  const bytes = typeof secret === 'string' ? decoded(secret).length : undefined
  if (bytes !== undefined && bytes >= SECRET_MIN_BYTES && bytes <= SECRET_MAX_BYTES)
    return undefined
  const got = bytes === undefined ? show(secret) : `${bytes} bytes`
  return `secret must be whsec_ and the base64 of ${SECRET_MIN_BYTES} to ${SECRET_MAX_BYTES} bytes, got ${got}`
}

function secretBytes(secret: string): Buffer {
  const problem = secretProblem(secret)
  if (problem !== undefined) throw new OptionsError('signWebhook', [problem])
  return decoded(secret)
}

function decoded(secret: string): Buffer {
  return Buffer.from(SECRET.exec(secret)?.[1] ?? '', 'base64')
}
