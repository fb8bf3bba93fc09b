import type { Reply } from '../../redis/wire.ts'
import type { Browse, StoredMessage } from '../../transport/transport.ts'
import { entryOf } from './entry.ts'
import { scripts } from './script.ts'
import { needQueue, run, type Store } from './store.ts'

export function browse(store: Store): Required<Browse> {
  const gauge: Browse['gauge'] = async (name) => {
    const queue = await needQueue(store, name)
    const reply = await run(store, scripts.GAUGE, queue, [queue.group])
    const numbers = Array.isArray(reply) ? reply.map(Number) : []
    const [depth = 0, scheduled = 0, inFlight = 0, dead = 0, ageMs = 0, paused = 0] = numbers
    return { depth, scheduled, inFlight, dead, ageMs, paused: paused === 1 }
  }
  return {
    gauge,
    async get(name, id) {
      const queue = await needQueue(store, name)
      return storedMessage(await run(store, scripts.GET, queue, [queue.group, id], { bytes: true }))
    },
    async cancel(name, id) {
      const queue = await needQueue(store, name)
      const isGone = (await run(store, scripts.CANCEL, queue, [queue.group, id])) === 1
      // The next one of its key may follow.
      if (isGone) store.bell.ring(name)
      return isGone
    },
    async setPaused(name, paused) {
      await run(store, scripts.SET_PAUSED, await needQueue(store, name), [paused ? '1' : '0'])
      store.bell.ring(name)
    },
    async purge(name) {
      const queue = await needQueue(store, name)
      // What comes meanwhile does not make it endless.
      const { depth = 0, scheduled = 0 } = await gauge(name)
      let removed = 0
      for (let step = 1; step > 0 && removed < depth + scheduled; removed += step) {
        step = Number(await run(store, scripts.PURGE, queue, [queue.group]))
      }
      return removed
    },
  }
}

function storedMessage(reply: Reply): StoredMessage | undefined {
  if (!Array.isArray(reply)) return undefined
  const [state, readyAt, entryId, fields = []] = reply
  const { envelope, sentAt, history } = entryOf(String(entryId), fields)
  return { envelope, state: stateOf(String(state)), sentAt, readyAt: Number(readyAt), history }
}

function stateOf(text: string): StoredMessage['state'] {
  return text === 'scheduled' || text === 'in flight' ? text : 'ready'
}
