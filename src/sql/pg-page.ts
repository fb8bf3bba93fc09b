import type { Row } from './executor.ts'

/** How many of these rows make a page: `limit` at most, and none that came without its body. Give one more than `limit`. */
export function withBodies(rows: readonly Row[], limit: number): number {
  const bare = rows.findIndex(({ body }) => body === null)
  return bare === -1 ? limit : Math.min(limit, bare)
}
