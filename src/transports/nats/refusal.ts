import { type ErrorCode, MillraceError } from '../../model/errors.ts'
import { read, readString } from '../../model/probe.ts'
import type { NatsAddress } from './client.ts'

/** The client's errors while connecting, by name and words; and what somebody who connects should do. */
const REFUSALS: readonly (readonly [RegExp, ErrorCode, string])[] = [
  [
    /^AuthorizationError|^UserAuthenticationExpired/,
    'MILLRACE_DENIED',
    'the server does not let this account in; check which it wants and whether it is right: user and password, token, nkey or creds file',
  ],
  [
    /^JetStreamNotEnabled/,
    'MILLRACE_UNAVAILABLE',
    'JetStream is off on this server or for this account; switch it on there (jetstream { }, and in the account), or use another account',
  ],
  [
    /server does not support 'tls'/,
    'MILLRACE_UNAVAILABLE',
    'the server does not speak TLS; write nats:// if plain text is meant, or switch TLS on there',
  ],
]

/** Why the server did not take us, in one line; undefined for other errors. */
export function natsRefusal(error: unknown, address: NatsAddress): MillraceError | undefined {
  const name = readString(error, 'name') ?? ''
  const said = `${name}: ${readString(error, 'message') ?? ''}`
  const found = REFUSALS.find(([words]) => words.test(said))
  if (found !== undefined) {
    const [, code, meaning] = found
    return new MillraceError(code, `nats: ${meaning} (${said})`, { cause: error })
  }
  if (name !== 'TimeoutError' || !isSecureWithoutCertificate(address)) return undefined
  return new MillraceError(
    'MILLRACE_UNAVAILABLE',
    'nats: the server did not answer in time; one that wants a certificate from us says no word (pass client: { tls: { cert, key } })',
    { cause: error, retryable: true },
  )
}

function isSecureWithoutCertificate({ servers = [], client }: NatsAddress): boolean {
  const all = typeof servers === 'string' ? [servers] : servers
  const tls = client?.tls
  const isSecure = tls != null || all.some((server) => server.startsWith('tls:'))
  return isSecure && read(tls, 'cert') === undefined && read(tls, 'certFile') === undefined
}
