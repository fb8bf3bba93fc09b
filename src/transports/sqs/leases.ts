import { type Settled, settled } from '../../model/delivery.ts'
import type { Fault } from '../../model/fault.ts'
import { lost } from '../../transport/outcomes.ts'
import { entryFault, sqsFault } from './faults.ts'
import type { Held } from './held.ts'
import type { PartOutcome } from './in-tens.ts'
import { askInParts, inTens } from './in-tens.ts'
import type { Store } from './store.ts'

/** A lease that shall have another end. */
export interface Hiding {
  readonly held: Held
  /** From now; 0 gives the message back. */
  readonly hiddenMs: number
}

/** Sets when each message can be seen again. Never sooner than asked, but for the 12 hours that SQS allows in all. */
export async function hideAll(
  store: Store,
  url: string,
  batch: readonly Hiding[],
  options: { readonly timeoutMs?: number; readonly inOrder?: boolean } = {},
): Promise<readonly Settled[]> {
  const { clock, api } = store
  const parts = inTens(batch)
  const now = clock.now()
  const outcomes = await askInParts(
    parts,
    (part) =>
      api.hide(
        {
          QueueUrl: url,
          Entries: part.map(({ held, hiddenMs }, at) => ({
            Id: String(at),
            ReceiptHandle: held.receiptHandle,
            VisibilityTimeout: secondsOf(held, hiddenMs, now),
          })),
        },
        options.timeoutMs,
      ),
    options.inOrder ? 1 : undefined,
  )
  return answers(parts, outcomes)
}

function secondsOf({ lastEndsAt }: Held, hiddenMs: number, now: number): number {
  const most = Math.max(0, Math.floor((lastEndsAt - now) / 1_000))
  return Math.min(Math.ceil(hiddenMs / 1_000), most)
}

export async function removeAll(
  store: Store,
  url: string,
  batch: readonly Held[],
): Promise<readonly Settled[]> {
  const parts = inTens(batch)
  const outcomes = await askInParts(parts, (part) =>
    store.api.remove({
      QueueUrl: url,
      Entries: part.map(({ receiptHandle }, at) => ({
        Id: String(at),
        ReceiptHandle: receiptHandle,
      })),
    }),
  )
  return answers(parts, outcomes)
}

/** One outcome per item, in order. */
function answers(
  parts: readonly (readonly unknown[])[],
  outcomes: readonly PartOutcome[],
): readonly Settled[] {
  return parts.flatMap((part, of) => {
    const outcome = outcomes[of]
    return part.map((_, at): Settled => {
      if (outcome === undefined) return lost
      if ('error' in outcome) return refusal(sqsFault(outcome.error))
      const failure = outcome.failures.get(String(at))
      return failure === undefined ? settled : refusal(entryFault(failure))
    })
  })
}

function refusal(fault: Fault): Settled {
  return { ok: false, fault }
}

/**
 * Gives messages back, to be seen at once. Of a FIFO queue the last one goes first, so that nobody is handed a later one
 * while an earlier one is still ours.
 */
export async function giveBack(
  store: Store,
  url: string,
  all: readonly Held[],
  timeoutMs?: number,
): Promise<void> {
  if (all.length === 0) return
  const inOrder = store.kind === 'fifo'
  const batch = (inOrder ? all.toReversed() : all).map((held) => ({ held, hiddenMs: 0 }))
  const limit = timeoutMs === undefined ? {} : { timeoutMs }
  const outcomes = await hideAll(store, url, batch, { inOrder, ...limit })
  const failed = outcomes.filter((outcome) => !outcome.ok && outcome.fault.code !== 'lost')
  const [first] = failed
  if (first === undefined || first.ok) return
  store.logger.warn('messages could not be given back; they return when their leases end', {
    messages: failed.length,
    error: first.fault.cause,
  })
}
