import type { Reply } from '../../redis/wire.ts'
import type { DelayedMessages, DueMessage, TakenMessage } from '../../store/delayed-messages.ts'
import { envelopeFrom, envelopeText } from '../stored-message.ts'
import { bufferOf, type Database, listOf, steps, wholeMs } from './database.ts'

export function redisDelayed({ run, key }: Database): DelayedMessages {
  const keysOf = (queue: string): readonly string[] =>
    ['open', 'places', 'messages', 'last'].map((kind) => key(queue, `delayed:${kind}`))
  const look = async (queue: string): Promise<readonly Reply[]> =>
    listOf(await run('LOOK_AT_DELAYED', keysOf(queue), []))
  return {
    async put(queue, batch) {
      for (const step of steps(batch)) {
        const args = step.flatMap(({ envelope, delayMs }) => [
          envelope.id,
          String(Math.ceil(delayMs)),
          envelopeText(envelope),
          bufferOf(envelope.body),
        ])
        await run('PUT_DELAYED', keysOf(queue), args)
      }
    },
    async take(queue, { max, leaseMs }) {
      const args = [String(Math.min(max, TAKE_MAX)), wholeMs(leaseMs)]
      const taken = listOf(await run('TAKE_DELAYED', keysOf(queue), args)).map(takenMessage)
      return taken.sort((a, b) => a.dueAt - b.dueAt || Number(a.placed - b.placed))
    },
    async sent(queue, taken) {
      for (const step of steps(taken)) {
        const args = step.flatMap(({ envelope, placed }) => [envelope.id, String(placed)])
        await run('REMOVE_SENT', keysOf(queue), args)
      }
    },
    async remove(queue, ids) {
      const gone: string[] = []
      for (const step of steps(ids)) {
        gone.push(...listOf(await run('REMOVE_DELAYED', keysOf(queue), step)).map(String))
      }
      return gone
    },
    async get(queue, id) {
      const reply = await run('GET_DELAYED', keysOf(queue), [id])
      return reply === null ? undefined : dueMessage(reply)
    },
    count: async (queue) => Number((await look(queue))[0]),
    async nextDueMs(queue) {
      const [, ms] = await look(queue)
      return ms === undefined || ms === null ? undefined : Number(ms)
    },
  }
}

/** Most in one taking; fewer than asked for is normal. */
const TAKE_MAX = 1_000

function dueMessage(reply: Reply): DueMessage {
  const [, id, due, text, body] = listOf(reply)
  return { envelope: envelopeFrom(String(id), String(text), body), dueAt: Number(due) }
}

function takenMessage(reply: Reply): TakenMessage {
  return { ...dueMessage(reply), placed: BigInt(String(listOf(reply)[0])) }
}
