import { createHash } from 'node:crypto'
import type { SendMessageBatchRequestEntry } from '@aws-sdk/client-sqs'
import { closedError } from '../../model/closed-error.ts'
import type { Sent } from '../../model/delivery.ts'
import type { Envelope } from '../../model/envelope.ts'
import { failedKeys } from '../../transport/failed-keys.ts'
import { behind, refused, stored } from '../../transport/outcomes.ts'
import { refusalOf, reservedHeader } from '../../transport/refusal.ts'
import type { SendOptions } from '../../transport/transport.ts'
import { entryFault, sqsFault } from './faults.ts'
import { askInParts, type PartOutcome, throwIfAllFailed } from './in-tens.ts'
import type { Place } from './places.ts'
import type { Store } from './store.ts'
import { BATCH_MAX, BATCH_MAX_BYTES, DELAY_MAX_MS, fifoTraits, standardTraits } from './traits.ts'
import { reservedIn, wireBytes, wireMessage } from './wire.ts'

type Entry = Omit<SendMessageBatchRequestEntry, 'Id'>

/** One message on its way: where it stands in the batch, what goes out, how much of a request it takes. */
interface Parcel {
  readonly at: number
  readonly id: string
  readonly entry: Entry
  readonly bytes: number
}

export async function send(
  store: Store,
  queue: string,
  batch: readonly Envelope[],
  { signal, atomic = false }: SendOptions,
): Promise<readonly Sent[]> {
  signal.throwIfAborted()
  if (store.closing.aborted) throw closedError('the transport')
  if (batch.length === 0) return []
  if (atomic && batch.length > 1) return batch.map(() => refused('invalid'))
  const place = await store.places.of(queue)
  const outcomes: Sent[] = []
  const parcels: Parcel[] = []
  const failed = failedKeys()
  for (const [at, envelope] of batch.entries()) {
    const packed = failed.outcomeOf(envelope) ?? pack(store, queue, envelope, place)
    if ('ok' in packed) {
      outcomes[at] = packed
      failed.note(envelope, packed)
    } else parcels.push({ at, id: envelope.id, ...packed })
  }
  const requests = inRequests(parcels)
  if (store.kind === 'fifo') await sendInOrder(store, place, requests, signal, outcomes)
  else await sendAtOnce(store, place, requests, signal, outcomes)
  return outcomes
}

function pack(
  { kind, clock }: Store,
  queue: string,
  envelope: Envelope,
  { messageBytes }: Place,
): Sent | Pick<Parcel, 'entry' | 'bytes'> {
  const refusal = refusalOf(envelope, kind === 'fifo' ? fifoTraits : standardTraits)
  if (refusal !== undefined) return refusal
  // Nothing here remembers keys for a window of the sender's choice.
  if (envelope.remember !== undefined && envelope.remember.length > 0) return refused('invalid')
  const message = wireMessage(queue, envelope)
  if (message === undefined) return reservedHeader(reservedIn(envelope) ?? '')
  const bytes = wireBytes(message)
  if (bytes > messageBytes) return refused('tooLarge')
  if (kind === 'fifo') return { entry: { ...message, ...groupOf(envelope) }, bytes }
  const delayMs = envelope.delayMs ?? Math.max(0, (envelope.readyAt ?? 0) - clock.now())
  if (delayMs > DELAY_MAX_MS) return refused('invalid')
  // Left out without a delay, so that the queue's own default counts.
  const entry = delayMs > 0 ? { ...message, DelaySeconds: Math.ceil(delayMs / 1_000) } : message
  return { entry, bytes }
}

/**
 * Without an ordering key a message is a group of its own and waits for nobody. The deduplication id is the message's id, so
 * that a send whose answer was lost stores once; a copy has another one, or SQS would drop it for five minutes.
 */
function groupOf({ id, orderingKey, copy = 0 }: Envelope): Partial<Entry> {
  return {
    MessageGroupId: fitting(orderingKey ?? id),
    MessageDeduplicationId: fitting(copy === 0 ? id : `${id}#${copy}`),
  }
}

/** SQS takes up to 128 printable ASCII characters; for others their hash stands. */
function fitting(text: string): string {
  if (/^[!-~]{1,128}$/.test(text)) return text
  return `sha256-${createHash('sha256').update(text).digest('base64url')}`
}

/** Up to ten to a request, and 1 MiB in all. */
function inRequests(parcels: readonly Parcel[]): readonly (readonly Parcel[])[] {
  const requests: Parcel[][] = []
  let bytes = Number.POSITIVE_INFINITY
  for (const parcel of parcels) {
    const last = requests.at(-1)
    if (!last || last.length === BATCH_MAX || bytes + parcel.bytes > BATCH_MAX_BYTES) {
      requests.push([parcel])
      bytes = parcel.bytes
    } else {
      last.push(parcel)
      bytes += parcel.bytes
    }
  }
  return requests
}

async function sendAtOnce(
  store: Store,
  { url }: Place,
  requests: readonly (readonly Parcel[])[],
  signal: AbortSignal,
  outcomes: Sent[],
): Promise<void> {
  const answers = await askInParts(requests, (parcels) =>
    store.api.send(
      {
        QueueUrl: url,
        Entries: parcels.map(({ entry }, at) => ({ ...entry, Id: String(at) })),
      },
      signal,
    ),
  )
  throwIfAllFailed(answers)
  for (const [of, parcels] of requests.entries()) {
    const answer = answers[of]
    for (const [at, { at: place, id }] of parcels.entries()) {
      if (answer === undefined) continue
      outcomes[place] = outcomeOf(id, answer, String(at))
    }
  }
}

function outcomeOf(id: string, answer: PartOutcome, entryId: string): Sent {
  if ('error' in answer) return { ok: false, fault: sqsFault(answer.error) }
  const failure = answer.failures.get(entryId)
  return failure === undefined ? stored(id) : { ok: false, fault: entryFault(failure) }
}

/** One request after the other; after a failure nothing later of its group is sent, or it would overtake. */
async function sendInOrder(
  store: Store,
  place: Place,
  requests: readonly (readonly Parcel[])[],
  signal: AbortSignal,
  outcomes: Sent[],
): Promise<void> {
  const stuck = new Map<string, Sent>()
  for (const parcels of requests) {
    const free = parcels.filter(({ at, entry }) => {
      const before = stuck.get(entry.MessageGroupId ?? '')
      if (before !== undefined) outcomes[at] = behind(before)
      return before === undefined
    })
    if (free.length === 0) continue
    try {
      await sendAtOnce(store, place, [free], signal, outcomes)
    } catch (error) {
      if (requests.length === 1) throw error
      for (const { at } of free) outcomes[at] = { ok: false, fault: sqsFault(error) }
    }
    for (const { at, entry } of free) {
      const outcome = outcomes[at]
      if (outcome !== undefined && !outcome.ok) stuck.set(entry.MessageGroupId ?? '', outcome)
    }
  }
}
