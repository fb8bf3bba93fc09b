import { MillraceError, OptionsError } from '../model/errors.ts'
import { show } from '../model/problems.ts'
import { eitherProblem } from './either.ts'
import type { PgPool, PgPoolOptions } from './pg-pool.ts'
import { nodePostgresPool, ownNodePostgresPool } from './pg-pool-node.ts'
import { postgresJsPool } from './pg-pool-postgresjs.ts'
import { isPgPool, isPostgresJs, type PgSource } from './pg-shapes.ts'

/** Where the database is: an address, a node-postgres Pool, or a postgres.js `sql`. */
export type PgAddress =
  | { readonly url: string; readonly pool?: never }
  | { readonly pool: PgSource; readonly url?: never }

/**
 * @throws MILLRACE_MISSING_CLIENT when an address is given and node-postgres is not installed
 */
export async function pgPool(address: PgAddress, options: PgPoolOptions): Promise<PgPool> {
  if (address.url !== undefined) return ownNodePostgresPool(await loadPg(), address.url, options)
  const { pool } = address
  if (isPgPool(pool)) return nodePostgresPool(pool, options)
  if (isPostgresJs(pool)) return postgresJsPool(pool, options)
  throw new OptionsError('pool', [POOL_EXPECTED])
}

const POOL_EXPECTED = 'expected a Pool of node-postgres or the `sql` of postgres.js'

/**
 * Says what is wrong with an address before anybody connects; undefined when nothing is. Takes the options as they were
 * given. The address is never shown, because it may hold a password.
 */
export function addressProblem(given: {
  readonly url?: unknown
  readonly pool?: unknown
}): string | undefined {
  const { url, pool } = given
  const choice = eitherProblem(given, 'url', 'pool')
  if (choice !== undefined) return choice
  if (pool !== undefined) {
    return isPgPool(pool) || isPostgresJs(pool)
      ? undefined
      : `pool: ${POOL_EXPECTED}, got ${show(pool)}`
  }
  if (typeof url !== 'string') return `${URL_EXPECTED}, got ${show(url)}`
  if (!/^postgres(ql)?:\/\//.test(url)) return `${URL_EXPECTED}, got ${kindOf(url)}`
  if (!isReadable(url)) {
    return 'url cannot be read as an address; characters such as # / ? @ in user and password must be percent-encoded'
  }
  const mode = /[?&]sslmode=([^&]*)/.exec(url)?.[1]
  return mode === undefined || SSL_MODES.includes(mode)
    ? undefined
    : `url: sslmode: expected one of ${SSL_MODES.join(', ')}, got ${show(mode)}`
}

/** Those of `pg`. What it does not know it takes for `verify-full`. */
const SSL_MODES = ['disable', 'prefer', 'require', 'verify-ca', 'verify-full', 'no-verify']

const URL_EXPECTED = 'url: expected an address such as postgres://host:5432/database'

function kindOf(url: string): string {
  if (url === '') return 'an empty text; is the environment variable set?'
  const scheme = /^[a-z][a-z0-9+.-]{0,20}:\/\//i.exec(url)?.[0]
  return scheme === undefined ? 'a text without postgres://' : `one that begins with ${scheme}`
}

/** As node-postgres reads it: spaces are encoded, and the host may be left out (a socket named in `?host=`). */
function isReadable(url: string): boolean {
  return [url, url.replace('@/', '@host/')].some((text) => URL.canParse(text, 'postgres://base'))
}

type NodePostgres = typeof import('pg')

async function loadPg(): Promise<NodePostgres['default']> {
  try {
    return (await import('pg')).default
  } catch (error) {
    throw new MillraceError(
      'MILLRACE_MISSING_CLIENT',
      'an address of postgres needs the package pg; run `npm install pg`, or pass { pool } with the client that you have',
      { cause: error },
    )
  }
}
