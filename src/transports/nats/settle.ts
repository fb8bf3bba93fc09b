import type { Dead, Delivery, Released, Settled, Settlement } from '../../model/delivery.ts'
import { settled } from '../../model/delivery.ts'
import { lost } from '../../transport/outcomes.ts'
import { ownFault } from '../../transport/own-errors.ts'
import { givenBack, lastHistory } from '../../transport/settling.ts'
import { type AckWord, answeredBy } from './ack.ts'
import { forgetAttempts, writeAttempts } from './attempts.ts'
import { natsFault } from './faults.ts'
import { type Hand, renew } from './hand.ts'
import type { Held } from './held.ts'
import { bury } from './letter.ts'
import type { QueueNames } from './names.ts'
import { nanos } from './nanos.ts'
import type { Store } from './store.ts'
import { DELAY_MAX_MS } from './traits.ts'

/** One subscription's view of the queue. */
export interface Settling {
  readonly store: Store
  readonly names: QueueNames
  readonly hand: Hand
  readonly ackWaitMs: number
}

/** Side by side: each is confirmed by itself, so a lost one spoils no other. */
export function settleBatch(
  parts: Settling,
  batch: readonly Settlement[],
): Promise<readonly Settled[]> {
  return Promise.all(batch.map((settlement) => settleOne(parts, settlement)))
}

async function settleOne(parts: Settling, settlement: Settlement): Promise<Settled> {
  const held = parts.hand.find(settlement.delivery.receipt)
  if (held === undefined || held.leaving) return lost
  held.leaving = true
  try {
    const isOurs = await settling(parts, held, settlement)
    parts.hand.drop(held)
    if (!isOurs) held.claim.lose()
    return isOurs ? settled : lost
  } catch (error) {
    // Still ours: the caller may try again while the lease lasts.
    held.leaving = false
    return { ok: false, fault: ownFault(error) ?? natsFault(error) }
  }
}

/** False when it turned out that somebody else has it. */
async function settling(parts: Settling, held: Held, settlement: Settlement): Promise<boolean> {
  if (settlement.as === 'released') return await release(parts, held, settlement)
  if (settlement.as === 'acked') await ack(parts, held)
  else await die(parts, held, settlement)
  return true
}

async function ack({ store, names }: Settling, held: Held): Promise<void> {
  await answeredBy(store, held, '+ACK')
  if (held.writtenAt === 0) return
  // The message is gone, so what is left beside it can only be useless.
  await forgetAttempts(store, names, held.seq).catch(() => {})
}

/**
 * First what happened, then the message: a crash in between leaves it to its holder's ack wait. False when that has ended: the server
 * does not ask whose word it hears, and would take the message from whoever has it now.
 */
export async function release(
  { store, names }: Pick<Settling, 'store' | 'names'>,
  held: Held,
  act: Omit<Released, 'as' | 'delivery'>,
): Promise<boolean> {
  const { id, seq, deliveries } = held
  const { history, alone, delayMs } = givenBack(held, act, DELAY_MAX_MS)
  const written = { id, seq, deliveries, history, alone }
  const at = await writeAttempts(store, names, written, held.writtenAt)
  if (at === undefined) return false
  held.writtenAt = at
  if (store.clock.now() >= held.safeUntil) return false
  await answeredBy(store, held, delayMs > 0 ? delayed(delayMs) : '-NAK')
  return true
}

function delayed(delayMs: number): AckWord {
  return `-NAK {"delay":${nanos(delayMs)}}`
}

/** First the letter, then the ack: a crash in between leaves both, and the next attempt decides. */
async function die(parts: Settling, held: Held, act: Dead): Promise<void> {
  await bury(parts.store, parts.names, held.delivery, { ...act, history: lastHistory(held, act) })
  await ack(parts, held)
}

export async function renewBatch(
  { store, hand, ackWaitMs }: Settling,
  batch: readonly Delivery[],
  leaseMs: number,
): Promise<readonly Settled[]> {
  const outcomes = await Promise.all(
    batch.map(async ({ receipt }): Promise<Settled> => {
      const held = hand.find(receipt)
      if (held === undefined || held.leaving) return lost
      try {
        const until = store.clock.now() + leaseMs
        await renew(store, held, ackWaitMs)
        held.leaseUntil = until
        return settled
      } catch (error) {
        return { ok: false, fault: natsFault(error) }
      }
    }),
  )
  hand.look()
  return outcomes
}
