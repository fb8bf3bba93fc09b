import { type Settled, settled } from '../../model/delivery.ts'
import { MillraceError } from '../../model/errors.ts'
import { allRefused } from '../../transport/atomic.ts'
import { lost, refused } from '../../transport/outcomes.ts'
import type { Transaction } from '../../transport/transport.ts'
import { type Draft, draft } from './draft.ts'
import { type Held, heldOf } from './held.ts'
import type { MemoryQueue } from './queue.ts'

/** Sends and acks that happen together at `commit`, or never. Pass it as `tx`. */
export interface MemoryTransaction {
  /**
   * @throws MILLRACE_BACKEND_FAULT when another transaction was faster with a key, a lease or the
   * last free place.
   */
  commit(): void
  rollback(): void
}

export interface OpenTransactions {
  begin(): MemoryTransaction
  /** Our acts inside it; undefined when it is none of ours or no longer open. */
  find(tx: unknown, now: () => number): Transaction | undefined
}

/** What a transaction needs of its store. */
export interface TransactionStore {
  queue(name: string): MemoryQueue | undefined
  nextSeq(): number
}

interface Uncommitted {
  readonly drafts: Map<string, Draft>
  readonly acks: Held[]
  now: () => number
}

export function openTransactions(store: () => TransactionStore): OpenTransactions {
  const open = new Map<unknown, Uncommitted>()
  return {
    begin() {
      const tx: MemoryTransaction = {
        commit() {
          const uncommitted = open.get(tx)
          open.delete(tx)
          if (uncommitted) commit(store(), uncommitted)
        },
        rollback() {
          open.delete(tx)
        },
      }
      open.set(tx, { drafts: new Map(), acks: [], now: () => 0 })
      return tx
    },
    find(tx, now) {
      const uncommitted = open.get(tx)
      if (!uncommitted) return undefined
      uncommitted.now = now
      return transaction(store(), uncommitted)
    },
  }
}

function transaction(store: TransactionStore, uncommitted: Uncommitted): Transaction {
  return {
    synchronous: true,
    send(name, batch, options) {
      const queue = store.queue(name)
      if (!queue) return batch.map(() => refused('notFound'))
      const now = uncommitted.now()
      // A draft of its own, so that an atomic batch can be dropped whole.
      const plan = draft(queue)
      for (const earlier of uncommitted.drafts.get(name)?.envelopes ?? []) plan.add(earlier, now)
      const outcomes = batch.map((envelope) => plan.add(envelope, now))
      const undone = options?.atomic === true ? allRefused(outcomes) : undefined
      if (undone === undefined) uncommitted.drafts.set(name, plan)
      return undone ?? outcomes
    },
    ack: (_queue, batch) =>
      batch.map((delivery): Settled => {
        const held = heldOf(delivery)
        if (held && isHeld(held, uncommitted.now())) {
          uncommitted.acks.push(held)
          return settled
        }
        held?.lose()
        return lost
      }),
  }
}

function commit(store: TransactionStore, uncommitted: Uncommitted): void {
  const now = uncommitted.now()
  if (!uncommitted.acks.every((held) => isHeld(held, now))) throw conflict('a lease ran out')
  const plans: Draft[] = []
  for (const [name, judged] of uncommitted.drafts) {
    const queue = store.queue(name)
    if (!queue) continue
    const plan = draft(queue)
    const refusedOne = judged.envelopes.map((one) => plan.add(one, now)).find((sent) => !sent.ok)
    if (refusedOne) throw conflict(`queue "${name}" changed`)
    plans.push(plan)
  }
  for (const held of uncommitted.acks) {
    held.queue.remove(held.entry, now)
    held.forget()
  }
  for (const plan of plans) plan.store(now, store.nextSeq)
  // What stood behind them may go on.
  for (const queue of new Set(uncommitted.acks.map((held) => held.queue))) queue.wake()
}

function isHeld(held: Held, now: number): boolean {
  return held.queue.holds(held.entry, held.fence, now)
}

function conflict(what: string): MillraceError {
  return new MillraceError(
    'MILLRACE_BACKEND_FAULT',
    `the transaction was rolled back: ${what} before the commit; run it again`,
    { retryable: true },
  )
}
