import type { Clock } from '../../model/clock.ts'
import type { DeadLetter } from '../../model/dead-letter.ts'
import { afterRedrive } from '../../model/history.ts'
import type { AuditEntry, AuditNote, Shelf } from '../../transport/transport.ts'
import { newEntry } from './entry.ts'
import type { MemoryQueue } from './queue.ts'
import { needQueue, type Store } from './store.ts'

export function shelf(store: Store, clock: Clock, open: () => void): Shelf {
  const take = (
    name: string,
    ids: readonly string[],
    audit: AuditNote & { readonly act: AuditEntry['act'] },
    use: (queue: MemoryQueue, letter: DeadLetter, now: number) => void,
  ): readonly string[] => {
    open()
    const queue = needQueue(store, name)
    const now = clock.now()
    const taken: string[] = []
    for (const id of ids) {
      const letter = queue.dead.take(id)
      if (!letter) continue
      use(queue, letter, now)
      const { act, actor, reason } = audit
      store.audit({ at: now, act, queue: name, messageId: id, actor, reason })
      taken.push(id)
    }
    queue.wake()
    return taken
  }

  return {
    async list(name, options) {
      open()
      return needQueue(store, name).dead.list(options)
    },
    async get(name, id) {
      open()
      return needQueue(store, name).dead.get(id)
    },
    async count(name, filter) {
      open()
      return needQueue(store, name).dead.count(filter)
    },
    async redrive(name, ids, note) {
      return take(name, ids, { ...note, act: 'redrive' }, (queue, letter, now) => {
        const { envelope, sentAt } = letter
        const history = afterRedrive(letter.history)
        queue.place(newEntry({ envelope, sentAt, seq: store.nextSeq(), history }), now, now)
      })
    },
    async discard(name, ids, note) {
      return take(name, ids, { ...note, act: 'discard' }, (queue, { envelope }, now) => {
        if (envelope.orderingKey !== undefined) queue.skip(envelope.orderingKey, envelope.id, now)
      })
    },
    async audit(name, limit) {
      open()
      return store.audited(name, limit)
    },
  }
}
