import type { SqliteHandle } from './executor.ts'
import { inTransaction } from './sqlite-handle.ts'

/** Since when calls wait for a lock, by the handle that they wait with. */
const waits = new WeakMap<SqliteHandle, Set<{ readonly since: number }>>()

/** A call begins to wait; answers how to say that it ended. */
export function waitBegins(handle: SqliteHandle, since: number): () => void {
  const all = waits.get(handle) ?? new Set()
  waits.set(handle, all)
  const mine = { since }
  all.add(mine)
  return () => void all.delete(mine)
}

/** Longer than a transaction of anybody should be open: everything else waits for it. */
const LONG_MS = 5_000

/** A sentence when calls have waited for long. `theirs` is the handle that the user gave, if any. */
export function waitProblems(
  where: string,
  now: number,
  { ours, theirs }: { readonly ours: SqliteHandle; readonly theirs?: SqliteHandle },
): readonly string[] {
  const all = [ours, ...(theirs === undefined || theirs === ours ? [] : [theirs])].flatMap(
    (one) => [...(waits.get(one) ?? [])],
  )
  const since = Math.min(...all.map((one) => one.since))
  if (now - since < LONG_MS || all.length === 0) return []
  const who =
    theirs !== undefined && inTransaction(theirs)
      ? 'a transaction is open on the handle that was given as db'
      : 'another writer has a transaction open'
  const calls = all.length === 1 ? 'a call waits' : `${all.length} calls wait`
  const forS = Math.round((now - since) / 1_000)
  return [
    `${where}: ${calls} for its lock, the first for ${forS} s: ${who}; look for one without COMMIT or ROLLBACK`,
  ]
}
