import { MillraceError } from './errors.ts'
import { read, readString } from './probe.ts'

/** What a user of this client writes to give it. */
interface Ways {
  readonly authority: string
  readonly pair: string
}

const OPTIONS: Ways = { authority: 'as ca', pair: 'cert and key' }
/** Of `pg`, which takes an address. */
const IN_ADDRESS: Ways = {
  authority: 'as sslrootcert=<file> in the address (of a pool of your own: ssl.ca)',
  pair: 'sslcert=<file> and sslkey=<file> in the address (of a pool of your own: ssl.cert and ssl.key)',
}

/** Codes of OpenSSL and of Node, as the errors of any client have them; and what they mean to somebody who connects. */
const MEANINGS: readonly (readonly [RegExp, (ways: Ways) => string])[] = [
  [
    /^(?:SELF_SIGNED_CERT_IN_CHAIN|DEPTH_ZERO_SELF_SIGNED_CERT|UNABLE_TO_(?:VERIFY_LEAF_SIGNATURE|GET_ISSUER_CERT\w*))$/,
    ({ authority }) =>
      `this machine does not trust the server's certificate; pass the certificate of the authority that signed it ${authority}, or name its file in NODE_EXTRA_CA_CERTS`,
  ],
  [
    /^CERT_(?:HAS_EXPIRED|NOT_YET_VALID)$/,
    () =>
      "the server's certificate has expired or is not valid yet; renew it there, or correct this machine's clock",
  ],
  [
    /^ERR_TLS_CERT_ALTNAME_INVALID$/,
    () =>
      "the server's certificate is for other names; use one of them in the address, or pass it as servername",
  ],
  [
    /^ERR_SSL_\w*ALERT_CERTIFICATE_REQUIRED$/,
    ({ pair }) => `the server wants a certificate from us; pass ${pair}`,
  ],
  [
    /^ERR_SSL_\w*ALERT_(?:UNKNOWN_CA|BAD_CERTIFICATE|UNSUPPORTED_CERTIFICATE|CERTIFICATE_\w+|ACCESS_DENIED)$/,
    ({ pair }) =>
      `the server does not accept our certificate; pass ${pair} of an authority that it trusts`,
  ],
  [
    /^ERR_SSL_\w*ALERT_HANDSHAKE_FAILURE$/,
    ({ pair }) =>
      `the server refused the handshake; it may want a certificate from us (${pair}), or another version of TLS`,
  ],
  [
    /^ERR_SSL_(?:WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG)$/,
    () => 'what listens there does not speak TLS; correct the port, or the protocol of the address',
  ],
  [
    /^ERR_OSSL_(?:X509_KEY_VALUES_MISMATCH|PEM_\w+|UNSUPPORTED)$/,
    () => 'ca, cert or key is no PEM, or cert and key do not belong together; pass the right ones',
  ],
]

/** Clients wrap errors; this deep and no deeper. */
const CAUSES_MAX = 5

/**
 * Why an encrypted connection did not come about, in one line; undefined for every other error.
 * @param what whose connection it is, `redis`
 */
export function tlsRefusal(error: unknown, what: string): MillraceError | undefined {
  const ways = what.includes('postgres') ? IN_ADDRESS : OPTIONS
  let cause = error
  for (let depth = 0; depth < CAUSES_MAX && cause !== undefined; depth++) {
    const code = readString(cause, 'code') ?? ''
    const meaning = MEANINGS.find(([codes]) => codes.test(code))?.[1]
    if (meaning !== undefined) {
      return new MillraceError('MILLRACE_UNAVAILABLE', `${what}: ${meaning(ways)} (${code})`, {
        cause: error,
      })
    }
    cause = read(cause, 'cause')
  }
  return undefined
}
