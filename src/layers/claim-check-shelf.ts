import type { DeadLetter } from '../model/dead-letter.ts'
import type { Envelope } from '../model/envelope.ts'
import { PAGE_BYTES_MAX } from '../transport/shelf-page.ts'
import type { Shelf } from '../transport/transport.ts'
import { referenceOf } from './blob-reference.ts'
import type { Blobs } from './blobs.ts'

/**
 * Dead letters as they were sent, as far as their blobs are there. A page fetches no more than it may have; the letters behind that show
 * their reference, and `get` shows each whole. A redrive moves the reference.
 */
export function claimCheckShelf(inner: Shelf, blobs: Blobs, signal: AbortSignal): Shelf {
  const whole = async (queue: string, letter: DeadLetter): Promise<DeadLetter> => ({
    ...letter,
    envelope: await wholeIfThere(blobs, queue, letter.envelope, signal),
  })
  return {
    ...inner,
    get: async (queue, id) => {
      const letter = await inner.get(queue, id)
      return letter && whole(queue, letter)
    },
    list: async (queue, options) => {
      const page = await inner.list(queue, options)
      if (options.bodies === false) return page
      const items: DeadLetter[] = []
      let bytesLeft = PAGE_BYTES_MAX
      for (const letter of page.items) {
        bytesLeft -= referenceOf(letter.envelope)?.bytes ?? 0
        items.push(bytesLeft < 0 ? letter : await whole(queue, letter))
      }
      return { ...page, items }
    },
  }
}

/** As it was sent; the reference when its blob is gone or the store away: who looks must see what there is. */
export async function wholeIfThere(
  blobs: Blobs,
  queue: string,
  envelope: Envelope,
  signal: AbortSignal,
): Promise<Envelope> {
  if (referenceOf(envelope) === undefined) return envelope
  const fetched = await blobs.fetcher(queue, envelope, signal)()
  return fetched.ok ? fetched.envelope : envelope
}
