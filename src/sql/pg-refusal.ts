import { MillraceError } from '../model/errors.ts'
import { readString } from '../model/probe.ts'

/**
 * What a Postgres server that answers lacks for us to begin: rights, an account, the database. Undefined for every other
 * error.
 * @param what whose connection it is, `postgres`
 */
export function pgRefusal(cause: unknown, what: string): MillraceError | undefined {
  const state = readString(cause, 'code')
  if (state === undefined || readString(cause, 'severity') === undefined) return undefined
  const why = `(${state}: ${readString(cause, 'message') ?? 'no reason given'})`
  if (state === '42501') {
    return new MillraceError(
      'MILLRACE_DENIED',
      `${what}: the account lacks a right that it needs ${why}; grant it, or let somebody who may apply ` +
        'what `millrace migrate --print-sql` prints',
      { cause },
    )
  }
  // "no pg_hba.conf entry for host …, no encryption", as managed servers say it.
  if (state === '28000' && why.includes('no encryption')) {
    return new MillraceError(
      'MILLRACE_DENIED',
      `${what}: the server does not let this account in without TLS ${why}; add ?sslmode=verify-full to the address, or ssl to the pool`,
      { cause },
    )
  }
  if (state.startsWith('28')) {
    return new MillraceError(
      'MILLRACE_DENIED',
      `${what}: the server does not let this account in ${why}; check user and password of the address`,
      { cause },
    )
  }
  if (state !== '3D000') return undefined
  return new MillraceError(
    'MILLRACE_UNAVAILABLE',
    `${what}: the server has no such database ${why}; create it, or correct the name in the address`,
    { cause },
  )
}
