import { createHash, timingSafeEqual } from 'node:crypto'

/**
 * Tells whether an Authorization header holds one of the tokens. Compares hashes of equal length, and all of them, so
 * that the time it takes says nothing about how much of a token was right.
 */
export function tokenCheck(
  tokens: readonly string[],
): (authorization: string | undefined) => boolean {
  const known = tokens.map(digest)
  return (authorization) => {
    const given = digest(/^Bearer +([\x21-\x7e]+) *$/i.exec(authorization ?? '')?.[1] ?? '')
    let found = false
    for (const token of known) found = timingSafeEqual(token, given) || found
    return found
  }
}

function digest(token: string): Buffer {
  return createHash('sha256').update(token).digest()
}
