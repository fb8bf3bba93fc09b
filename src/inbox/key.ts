import { createHash } from 'node:crypto'

const HASHED = 'sha256:'
/** Fits every database encoding and every index. */
const KEPT_AS_IT_IS = /^[\x20-\x7e]{1,255}$/

/**
 * A key as the table keeps it. Keys come from the user's own function and may be any string; what is long or not plain
 * ASCII (Postgres keeps no NUL, and not every encoding has every letter) is kept as its hash. A hash never equals a key
 * that was kept as it is.
 */
export function storedKey(key: string): string {
  if (KEPT_AS_IT_IS.test(key) && !key.startsWith(HASHED)) return key
  // UTF-16, because UTF-8 would make all lone surrogates one.
  return HASHED + createHash('sha256').update(Buffer.from(key, 'utf16le')).digest('hex')
}
