import { isName } from '../model/kept-text.ts'
import type { DelayedMessages } from '../store/delayed-messages.ts'
import type { Journal } from '../store/journal.ts'
import type { KeyedMessage, KeyMemory, Reservation } from '../store/key-memory.ts'
import type { StoredShelf } from '../store/stored-shelf.ts'
import { checkBatch, checkBody, checkIds, checkMax, checkMs, checkName } from './bounds.ts'
import type { Open } from './guarded-store.ts'

export function guardedKeys(keys: KeyMemory, open: Open): KeyMemory {
  return {
    async reserve(queue, batch, holdMs) {
      open()
      checkMs('holdMs', holdMs)
      checkKeyed(queue, batch)
      if (batch.every((message) => message.keys.length === 0)) return batch.map(() => reserved)
      return await keys.reserve(queue, batch, holdMs)
    },
    async confirm(queue, batch) {
      open()
      checkKeyed(queue, batch)
      const keyed = batch.filter((message) => message.keys.length > 0)
      if (keyed.length > 0) await keys.confirm(queue, keyed)
    },
    async free(queue, batch) {
      open()
      checkKeyed(queue, batch)
      const keyed = batch.filter((message) => message.keys.length > 0)
      if (keyed.length > 0) await keys.free(queue, keyed)
    },
  }
}

const reserved: Reservation = { as: 'reserved' }

function checkKeyed(queue: string, batch: readonly KeyedMessage[]): void {
  checkName('queue', queue)
  checkBatch(batch)
  for (const { id, keys } of batch) {
    checkIds('id', [id])
    for (const { key, fingerprint, windowMs } of keys) {
      checkIds('key', [key])
      checkMs('windowMs', windowMs)
      if (fingerprint !== undefined) checkIds('fingerprint', [fingerprint])
    }
  }
}

export function guardedDelayed(delayed: DelayedMessages, open: Open): DelayedMessages {
  return {
    async put(queue, batch) {
      open()
      checkName('queue', queue)
      checkBatch(batch)
      for (const { envelope, delayMs } of batch) {
        checkIds('id', [envelope.id])
        checkBody(envelope.body)
        checkMs('delayMs', delayMs)
      }
      if (batch.length > 0) await delayed.put(queue, batch)
    },
    async take(queue, options) {
      open()
      checkName('queue', queue)
      checkMax('max', options.max)
      checkMs('leaseMs', options.leaseMs)
      return await delayed.take(queue, options)
    },
    async sent(queue, taken) {
      open()
      checkName('queue', queue)
      checkBatch(taken)
      if (taken.length > 0) await delayed.sent(queue, taken)
    },
    async remove(queue, ids) {
      open()
      checkName('queue', queue)
      checkBatch(ids)
      const known = unique(ids)
      return known.length === 0 ? [] : await delayed.remove(queue, known)
    },
    async get(queue, id) {
      open()
      checkName('queue', queue)
      return isName(id) ? await delayed.get(queue, id) : undefined
    },
    async count(queue) {
      open()
      checkName('queue', queue)
      return await delayed.count(queue)
    },
    async nextDueMs(queue) {
      open()
      checkName('queue', queue)
      return await delayed.nextDueMs(queue)
    },
  }
}

/** Each once, without those that no store can have. */
function unique(ids: readonly string[]): readonly string[] {
  return [...new Set(ids)].filter((id) => isName(id))
}

export function guardedShelf(shelf: StoredShelf, open: Open): StoredShelf {
  return {
    async put(batch) {
      open()
      checkBatch(batch)
      for (const { queue, envelope } of batch) {
        checkName('queue', queue)
        checkIds('id', [envelope.id])
        checkBody(envelope.body)
      }
      if (batch.length > 0) await shelf.put(batch)
    },
    async list(queue, options) {
      open()
      checkName('queue', queue)
      checkMax('limit', options.limit)
      return await shelf.list(queue, options)
    },
    async get(queue, id) {
      open()
      checkName('queue', queue)
      return isName(id) ? await shelf.get(queue, id) : undefined
    },
    async count(queue, filter) {
      open()
      checkName('queue', queue)
      return await shelf.count(queue, filter)
    },
    ...guardedRemovals(shelf, open),
    async audit(queue, limit) {
      open()
      checkName('queue', queue)
      checkMax('limit', limit)
      return await shelf.audit(queue, limit)
    },
  }
}

function guardedRemovals(
  shelf: StoredShelf,
  open: Open,
): Pick<StoredShelf, 'redriven' | 'discard'> {
  return {
    async redriven(queue, letters, audit) {
      open()
      checkName('queue', queue)
      checkBatch(letters)
      const known = [...new Map(letters.map((letter) => [letter.id, letter])).values()].filter(
        ({ id }) => isName(id),
      )
      return known.length === 0 ? [] : await shelf.redriven(queue, known, audit)
    },
    async discard(queue, ids, audit) {
      open()
      checkName('queue', queue)
      checkBatch(ids)
      const known = unique(ids)
      return known.length === 0 ? [] : await shelf.discard(queue, known, audit)
    },
  }
}

export function guardedJournal(journal: Journal, open: Open): Journal {
  return {
    async read(queue, ids) {
      open()
      checkName('queue', queue)
      checkBatch(ids)
      checkIds('id', ids)
      return ids.length === 0 ? [] : await journal.read(queue, ids)
    },
    async write(queue, batch, keepMs) {
      open()
      checkName('queue', queue)
      checkBatch(batch)
      checkMs('keepMs', keepMs)
      for (const { id, runner } of batch) {
        checkIds('id', [id])
        if (runner !== undefined) checkName('runner', runner)
      }
      if (batch.length > 0) await journal.write(queue, batch, keepMs)
    },
    async forget(queue, ids) {
      open()
      checkName('queue', queue)
      checkBatch(ids)
      const known = unique(ids)
      if (known.length > 0) await journal.forget(queue, known)
    },
  }
}
