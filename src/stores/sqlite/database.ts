import type { Clock } from '../../model/clock.ts'
import { closedError } from '../../model/closed-error.ts'
import type { SqliteHandle } from '../../sql/executor.ts'
import { nextTurn, whenFree, withWriteTransaction } from '../../sql/sqlite-write.ts'

/** One connection of the store: every act is one transaction. */
export interface Database {
  readonly handle: SqliteHandle
  readonly now: () => number
  read<T>(work: () => T): Promise<T>
  /** A read after which the event loop turns: whoever reads page by page, or one by one, must not stop it for all of them. */
  look<T>(work: () => T): Promise<T>
  write<T>(work: () => T): Promise<T>
  /** Once: ends the waiting; the handle is closed when it is ours. */
  close(): void
}

export interface DatabaseOptions {
  readonly handle: SqliteHandle
  /** A handle in memory is shared with the user and stays open. */
  readonly shared: boolean
  readonly clock: Clock
  readonly random: () => number
}

export function openDatabase({ handle, shared, clock, random }: DatabaseOptions): Database {
  const closed = new AbortController()
  const { signal } = closed
  return {
    handle,
    now: () => clock.now(),
    read: (work) => whenFree(handle, clock, signal, work, { random }),
    async look(work) {
      const value = await whenFree(handle, clock, signal, work, { random })
      await nextTurn()
      return value
    },
    write: (work) => withWriteTransaction(handle, clock, signal, work, { random }),
    close() {
      closed.abort(closedError('the store'))
      if (!shared) handle.close()
    },
  }
}
