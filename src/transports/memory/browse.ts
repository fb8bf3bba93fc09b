import type { Clock } from '../../model/clock.ts'
import type { Browse, StoredMessage } from '../../transport/transport.ts'
import type { Entry } from './entry.ts'
import { needQueue, type Store } from './store.ts'

export function browse(store: Store, clock: Clock, open: () => void): Browse {
  return {
    async gauge(name) {
      open()
      return needQueue(store, name).gauge(clock.now())
    },
    async get(name, id) {
      open()
      const queue = needQueue(store, name)
      queue.sweep(clock.now())
      const entry = queue.entries.get(id)
      return entry && stored(entry)
    },
    async cancel(name, id) {
      open()
      const queue = needQueue(store, name)
      const entry = queue.entries.get(id)
      if (!entry) return false
      queue.remove(entry, clock.now())
      queue.wake()
      return true
    },
    async setPaused(name, paused) {
      open()
      const queue = needQueue(store, name)
      queue.paused = paused
      queue.wake()
    },
    async purge(name) {
      open()
      const queue = needQueue(store, name)
      queue.sweep(clock.now())
      const waiting = [...queue.entries.values()].filter((entry) => entry.state !== 'in flight')
      // Newest first, so that none of a key moves up only to be removed.
      for (const entry of waiting.reverse()) queue.remove(entry, clock.now())
      return waiting.length
    },
  }
}

function stored(entry: Entry): StoredMessage | undefined {
  if (entry.state === 'gone') return undefined
  const { envelope, sentAt, readyAt, history } = entry
  const state = entry.state === 'behind' ? 'ready' : entry.state
  return { envelope, state, sentAt, readyAt, history }
}
