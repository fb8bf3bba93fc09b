import type { Sent } from '../model/delivery.ts'
import type { Envelope } from '../model/envelope.ts'
import { MillraceError } from '../model/errors.ts'
import { type BatchResult, PartialBatchError } from '../model/partial-batch-error.ts'
import type { Transport } from '../transport/transport.ts'
import type { DrainRate } from './drain-rate.ts'
import { faultError } from './fault-error.ts'
import type { AnyQueue } from './queue.ts'
import type { SendResult } from './send.ts'

/** What turns a transport's outcome into what the sender is told. */
export interface ResultContext {
  readonly queue: AnyQueue
  readonly transport: Transport
  readonly drain: DrainRate
  readonly onSent: (messages: number) => void
}

/** @throws what the fault means to the sender; names `index` in a batch. */
export function resultOf(
  sent: Sent,
  envelope: Envelope,
  context: ResultContext,
  index?: number,
): SendResult {
  if (sent.ok) {
    if (!sent.duplicate) context.onSent(1)
    return { id: sent.id, duplicate: sent.duplicate }
  }
  const { queue, transport, drain } = context
  throw faultError(sent.fault, {
    queue,
    messageId: envelope.id,
    ...(envelope.idempotencyKey === undefined ? {} : { idempotencyKey: envelope.idempotencyKey }),
    bytes: envelope.body.byteLength,
    limits: transport.traits.limits,
    retryAfterMs: () =>
      drain.retryAfterMs(queue.capacity === 'unbounded' ? 0 : queue.capacity.maxDepth),
    ...(index === undefined ? {} : { index }),
  })
}

/** All stored, or the fault of the item that stopped the batch. */
export function batchResults(
  outcomes: readonly Sent[],
  envelopes: readonly Envelope[],
  context: ResultContext,
): readonly SendResult[] {
  if (outcomes.some(isRefused)) throwRefused(outcomes, envelopes, context)
  const results: SendResult[] = []
  let stored = 0
  for (let index = 0; index < envelopes.length; index += 1) {
    const sent = outcomeAt(outcomes, index)
    if (!sent.ok) continue
    if (!sent.duplicate) stored += 1
    results.push({ id: sent.id, duplicate: sent.duplicate })
  }
  context.onSent(stored)
  return results
}

function isRefused({ ok }: Sent): boolean {
  return !ok
}

function throwRefused(
  outcomes: readonly Sent[],
  envelopes: readonly Envelope[],
  context: ResultContext,
): void {
  if (!outcomes.every(isRefused)) throw partial(outcomes, envelopes, context)
  const culprit = Math.max(0, culpritOf(outcomes, envelopes, context))
  const envelope = envelopes[culprit]
  if (envelope !== undefined) resultOf(outcomeAt(outcomes, culprit), envelope, context, culprit)
}

/** Every item of an atomic batch carries the fault's code: one met another message, and knows its id, or is too large by itself. */
function culpritOf(
  outcomes: readonly Sent[],
  envelopes: readonly Envelope[],
  { transport }: ResultContext,
): number {
  const { bodyBytes, inlineBytes = bodyBytes } = transport.traits.limits
  return outcomes.findIndex((sent, index) => {
    if (sent.ok) return false
    const { code, id } = sent.fault
    const bytes = envelopes[index]?.body.byteLength ?? 0
    return id !== undefined || (code === 'tooLarge' && bytes > inlineBytes)
  })
}

/** Only of a backend without atomic batches. */
function partial(
  outcomes: readonly Sent[],
  envelopes: readonly Envelope[],
  context: ResultContext,
): PartialBatchError {
  const results = envelopes.map((envelope, index): BatchResult => {
    try {
      return resultOf(outcomeAt(outcomes, index), envelope, context, index)
    } catch (error) {
      if (error instanceof MillraceError) return { error }
      throw error
    }
  })
  return new PartialBatchError(context.queue.name, context.transport.name, results)
}

function outcomeAt(outcomes: readonly Sent[], index: number): Sent {
  const sent = outcomes[index]
  if (sent === undefined) throw new Error(`no outcome for item ${index}`)
  return sent
}
