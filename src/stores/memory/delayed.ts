import type { Clock } from '../../model/clock.ts'
import type { Envelope } from '../../model/envelope.ts'
import type { DelayedMessages, DueMessage, TakenMessage } from '../../store/delayed-messages.ts'
import { keptEnvelope } from '../../transport/kept-envelope.ts'

export interface Waiting {
  readonly seq: number
  readonly envelope: Envelope
  readonly dueAt: number
  /** When it can be taken (again). */
  readonly openAt: number
  readonly wasTaken: boolean
}

export type WaitingByQueue = Map<string, Map<string, Waiting>>

export function memoryDelayed(
  queues: WaitingByQueue,
  clock: Clock,
  nextSeq: () => number,
): DelayedMessages {
  const waiting = (queue: string): Map<string, Waiting> => queues.get(queue) ?? new Map()
  return {
    async put(queue, batch) {
      const there = waiting(queue)
      queues.set(queue, there)
      for (const { envelope, delayMs } of batch) {
        if (there.get(envelope.id)?.wasTaken === false) continue
        const dueAt = clock.now() + delayMs
        const kept = keptEnvelope(envelope)
        const times = { dueAt, openAt: dueAt, wasTaken: false }
        there.set(kept.id, { seq: nextSeq(), envelope: kept, ...times })
      }
    },
    async take(queue, { max, leaseMs }) {
      const now = clock.now()
      const there = waiting(queue)
      const taken = [...there.values()]
        .filter(({ openAt }) => openAt <= now)
        .sort((a, b) => a.openAt - b.openAt || a.seq - b.seq)
        .slice(0, max)
      for (const one of taken)
        there.set(one.envelope.id, { ...one, openAt: now + leaseMs, wasTaken: true })
      return taken.sort((a, b) => a.dueAt - b.dueAt || a.seq - b.seq).map(takenMessage)
    },
    async sent(queue, taken) {
      const there = waiting(queue)
      for (const { envelope, placed } of taken) {
        if (there.get(envelope.id)?.seq === Number(placed)) there.delete(envelope.id)
      }
    },
    async remove(queue, ids) {
      const there = waiting(queue)
      return ids.filter((id) => there.delete(id))
    },
    async get(queue, id) {
      const found = waiting(queue).get(id)
      return found && dueMessage(found)
    },
    count: async (queue) => waiting(queue).size,
    async nextDueMs(queue) {
      let next: number | undefined
      for (const { openAt } of waiting(queue).values()) {
        if (next === undefined || openAt < next) next = openAt
      }
      return next === undefined ? undefined : Math.max(0, next - clock.now())
    },
  }
}

function dueMessage({ envelope, dueAt }: Waiting): DueMessage {
  return { envelope, dueAt }
}

function takenMessage(waiting: Waiting): TakenMessage {
  return { ...dueMessage(waiting), placed: BigInt(waiting.seq) }
}
