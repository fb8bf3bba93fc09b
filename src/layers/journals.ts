import type { Delivery, Released, Settled, Settlement } from '../model/delivery.ts'
import { type AttemptHistory, afterRelease, freshHistory } from '../model/history.ts'
import type { Store } from '../store/store.ts'
import { lost } from '../transport/outcomes.ts'
import { isBare, untouched } from '../transport/settling.ts'
import type { Subscription, Transport } from '../transport/transport.ts'
import { chunks } from './chunks.ts'
import { readPast } from './past.ts'
import { stillOurs } from './still-ours.ts'

/**
 * Longer than any message stays with a broker that keeps order (SQS: 14 days): a journal that nobody ended, because its
 * message was acked by a process that died right after, is forgotten then.
 */
const KEEP_MS = 30 * 86_400_000

/**
 * Keeps the history of attempts in the store, for brokers that keep an order: a copy would go to the end, so a failed message
 * goes back in place, and what it went through is written down before.
 */
export function journals(inner: Transport, store: Store): Transport {
  return {
    ...inner,
    traits: { ...inner.traits, keepsHistory: true, uncountedRelease: true },
    async subscribe(queue, options) {
      const subscription = await inner.subscribe(queue, options)
      return journalledSubscription(subscription, bookOf(store, queue), options.leaseMs)
    },
  }
}

/** The journals of one queue. */
interface Book {
  read(ids: readonly string[]): Promise<ReadonlyMap<string, AttemptHistory>>
  write(entries: ReadonlyMap<string, AttemptHistory>): Promise<void>
  /** Without it they end by themselves. */
  forget(ids: readonly string[]): Promise<void>
}

function bookOf({ journal, traits }: Store, queue: string): Book {
  const { batch } = traits.limits
  return {
    read: async (ids) => {
      const found = new Map<string, AttemptHistory>()
      for (const part of chunks([...new Set(ids)], batch)) {
        const entries = await journal.read(queue, part)
        for (const [i, id] of part.entries()) {
          const entry = entries[i]
          if (entry !== undefined) found.set(id, entry.history)
        }
      }
      return found
    },
    write: async (entries) => {
      const written = [...entries].map(([id, history]) => ({ id, history, runner: undefined }))
      for (const part of chunks(written, batch)) await journal.write(queue, part, KEEP_MS)
    },
    forget: async (ids) => {
      for (const part of chunks(ids, batch)) {
        await journal.forget(queue, part).catch(() => undefined)
      }
    },
  }
}

function journalledSubscription(inner: Subscription, book: Book, leaseMs: number): Subscription {
  const withHistory = async (came: readonly Delivery[]): Promise<readonly Delivery[]> => {
    const known = await book.read(came.filter(wasHandedOut).map(idOf))
    return came.map((delivery) => {
      // A redriven message comes with its past; a journal of the time before that redrive was left by somebody who died.
      const whole = readPast(delivery)
      const written = known.get(idOf(delivery))
      const isNewer = written !== undefined && written.redrives >= whole.history.redrives
      return isNewer ? { ...whole, history: written } : whole
    })
  }

  /** Writes down what these went through; answers those that may go back. */
  const writeDown = async (failed: readonly Released[]): Promise<ReadonlySet<Settlement>> => {
    const deliveries = failed.map(({ delivery }) => delivery)
    const ours = await stillOurs(inner, deliveries, leaseMs)
    const open = failed.filter(({ delivery }) => ours.has(delivery))
    const entries = open.map(
      ({ delivery, ...act }) => [idOf(delivery), afterRelease(delivery.history, act)] as const,
    )
    await book.write(new Map(entries))
    return new Set(open)
  }

  return {
    ...inner,
    receive: async (options) => {
      const came = await inner.receive(options)
      try {
        return await withHistory(came)
      } catch (error) {
        // Nobody knows how often these failed, so nobody may run them.
        await inner.settle(came.map(untouched))
        throw error
      }
    },
    settle: async (batch) => {
      const failed = batch.filter(isFailed)
      const written = failed.length === 0 ? new Set<Settlement>() : await writeDown(failed)
      const open = batch.filter((one) => !isFailed(one) || written.has(one))
      const ended = await inner.settle(open.map((one) => (isFailed(one) ? inPlace(one) : one)))
      const outcomes = new Map<Settlement, Settled | undefined>(
        open.map((one, i) => [one, ended[i]]),
      )
      const gone = open.filter((one) => one.as !== 'released' && outcomes.get(one)?.ok)
      await book.forget(
        gone
          .filter(({ delivery }) => delivery.history !== freshHistory)
          .map(({ delivery }) => idOf(delivery)),
      )
      return batch.map((one) => outcomes.get(one) ?? lost)
    },
  }
}

function idOf({ envelope }: Delivery): string {
  return envelope.id
}

/** The first handing-out of a message has nothing to read, where the broker counts. */
function wasHandedOut({ deliveries }: Delivery): boolean {
  return deliveries !== 1
}

/** There is something to write down. */
function isFailed(one: Settlement): one is Released {
  return one.as === 'released' && !isBare(one)
}

function inPlace({ delivery, delayMs }: Released): Settlement {
  return { ...untouched(delivery), delayMs }
}
