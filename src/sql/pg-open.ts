import { MillraceError, OptionsError } from '../model/errors.ts'
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

export const POOL_EXPECTED = 'expected a Pool of node-postgres or the `sql` of postgres.js'

/** Says what is wrong with an address before anybody connects; undefined when nothing is. */
export function addressProblem(address: {
  readonly url?: unknown
  readonly pool?: unknown
}): string | undefined {
  const { url, pool } = address
  if ((url === undefined) === (pool === undefined)) return 'expected either url or pool'
  if (pool !== undefined)
    return isPgPool(pool) || isPostgresJs(pool) ? undefined : `pool: ${POOL_EXPECTED}`
  const usable = typeof url === 'string' && /^postgres(ql)?:\/\//.test(url)
  return usable
    ? undefined
    : 'url: expected an address such as postgres://user:password@host:5432/database'
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
