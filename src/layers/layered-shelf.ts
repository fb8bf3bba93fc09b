import { newId } from '../model/ids.ts'
import type { AuditNote, Shelf, Transport } from '../transport/transport.ts'
import { chunks } from './chunks.ts'
import type { DeadLettersOptions } from './dead-letters.ts'
import { sendInParts } from './in-parts.ts'
import { redrivenCopy, withoutPast } from './past.ts'
import { withRedriveLease } from './redrive-lease.ts'

/** Bodies of all are in memory at once. */
const REDRIVE_MAX = 100

/** The shelf as users see it; a redrive sends to the broker and then takes off the shelf. */
export function layeredShelf(
  inner: Transport,
  options: DeadLettersOptions,
  closing: AbortSignal,
): Shelf {
  const { store, clock, random } = options
  const { shelf = store.shelf, batch = store.traits.limits.batch } = options
  const never = new AbortController().signal

  const redriveSome = async (
    queue: string,
    ids: readonly string[],
    audit: AuditNote,
  ): Promise<readonly string[]> => {
    const found = await Promise.all(ids.map((id) => shelf.get(queue, id)))
    const letters = found.filter((letter) => letter !== undefined)
    const sent = await sendInParts(inner, queue, letters.map(redrivenCopy), never)
    const moved = letters.filter((_, i) => sent[i]?.ok)
    const redriven = moved.map(({ envelope, deadAt }) => ({ id: envelope.id, deadAt }))
    return redriven.length === 0 ? [] : shelf.redriven(queue, redriven, audit)
  }

  return {
    count: shelf.count,
    audit: shelf.audit,
    list: async (queue, asked) => {
      const { items, cursor } = await shelf.list(queue, asked)
      return { items: items.map(withoutPast), cursor }
    },
    get: async (queue, id) => {
      const letter = await shelf.get(queue, id)
      return letter && withoutPast(letter)
    },
    discard: async (queue, ids, audit) => {
      const gone: string[] = []
      for (const part of chunks(ids, batch)) {
        gone.push(...(await shelf.discard(queue, part, audit)))
      }
      return gone
    },
    redrive: (queue, ids, audit) =>
      withRedriveLease(queue, { store, clock, holder: newId(clock, random), closing }, async () => {
        const moved: string[] = []
        const size = Math.min(REDRIVE_MAX, batch)
        for (const part of chunks([...new Set(ids)], size)) {
          moved.push(...(await redriveSome(queue, part, audit)))
        }
        return moved
      }),
  }
}
