import { closedError } from '../../model/closed-error.ts'
import type { Sent } from '../../model/delivery.ts'
import type { Envelope } from '../../model/envelope.ts'
import type { Reply } from '../../redis/wire.ts'
import { allRefused } from '../../transport/atomic.ts'
import { DELAY_MAX_MS } from '../../transport/keeps-all.ts'
import { duplicateOf, refused, stored } from '../../transport/outcomes.ts'
import { refusalOf } from '../../transport/refusal.ts'
import type { SendOptions } from '../../transport/transport.ts'
import { argumentOf, fieldsOf } from './entry.ts'
import { type QueueKeys, queueKeys } from './keys.ts'
import { scripts } from './script.ts'
import { run, type Store } from './store.ts'

/** A script carries at most this many bytes of bodies and messages; the server does nothing else meanwhile. */
const SCRIPT_BYTES = 32 * 1024 * 1024
const SCRIPT_MESSAGES = 1_000
const KEY_MAX_BYTES = 2_000

/** Stores a batch; an atomic one in one script, however large it is. */
export async function send(
  store: Store,
  queue: string,
  batch: readonly Envelope[],
  { signal, atomic = false }: SendOptions,
): Promise<readonly Sent[]> {
  if (batch.length === 0) return []
  if (store.closing.aborted) throw closedError('the transport')
  signal.throwIfAborted()
  const judged = batch.map((envelope) => refusal(envelope, store))
  if (atomic) {
    const all = judged.map((bad, at) => bad ?? duplicateOf(batch[at]?.id ?? ''))
    const refusedAtOnce = allRefused(all)
    if (refusedAtOnce !== undefined) return refusedAtOnce
  }
  const keys = store.queues.get(queue) ?? queueKeys(store.naming, queue)
  const good = batch.filter((_, at) => judged[at] === undefined)
  const answers: Sent[] = []
  for (const part of atomic ? [good] : parts(good)) {
    answers.push(...(await storeAll(store, keys, part, { signal, atomic })))
  }
  let next = 0
  const outcomes = judged.map((bad) => bad ?? answers[next++] ?? refused('unknown'))
  if (outcomes.some((outcome) => outcome.ok && !outcome.duplicate)) store.bell.ring(queue)
  return outcomes
}

async function storeAll(
  store: Store,
  queue: QueueKeys,
  batch: readonly Envelope[],
  options: Required<Omit<SendOptions, 'lockMs'>>,
): Promise<readonly Sent[]> {
  if (batch.length === 0) return []
  const storeBatch = batch.every(isPlain) ? storePlain : storeAny
  const reply = await storeBatch(store, queue, batch, options)
  if (reply === -1) return batch.map(() => refused('notFound'))
  const outcomes = batch.map(({ id }, at) => outcomeOf(id, reply, at))
  return (options.atomic ? allRefused(outcomes) : undefined) ?? outcomes
}

/** Nothing but id and body. */
function isPlain(envelope: Envelope): boolean {
  const { headers, priority, fairKey, delayMs, readyAt } = envelope
  const { idempotencyKey, orderingKey, remember } = envelope
  for (const _ in headers) return false
  const isTimed = delayMs !== undefined || readyAt !== undefined
  const isKeyed =
    idempotencyKey !== undefined || orderingKey !== undefined || remember !== undefined
  return priority === 0 && fairKey === undefined && !isTimed && !isKeyed
}

type StoreBatch = (
  store: Store,
  queue: QueueKeys,
  batch: readonly Envelope[],
  options: Required<Omit<SendOptions, 'lockMs'>>,
) => Promise<Reply>

const storePlain: StoreBatch = (store, queue, batch, { signal, atomic }) => {
  const args: (string | Buffer)[] = [atomic ? '1' : '0']
  for (const { id, body } of batch) args.push(id, argumentOf(body))
  return run(store, scripts.SEND_PLAIN, queue, args, { signal })
}

const storeAny: StoreBatch = (store, queue, batch, { signal, atomic }) => {
  const args: (string | Buffer)[] = [atomic ? '1' : '0']
  const keys: string[] = []
  for (const envelope of batch) {
    const { id, remember = [] } = envelope
    const fields = fieldsOf(envelope)
    args.push(id, whenOf(envelope), String(fields.length), ...fields, String(remember.length))
    for (const { kind, key, fingerprint = '', windowMs } of remember) {
      keys.push(queue.remembered(kind, key))
      const place = String(queue.all.length + keys.length)
      args.push(place, kind, fingerprint, String(Math.ceil(windowMs)))
    }
  }
  return run(store, scripts.SEND, queue, args, { keys, signal })
}

/** The window may be up to ten years; a delay or a moment, never both. */
function whenOf({ delayMs = 0, readyAt }: Envelope): string {
  if (readyAt !== undefined) return `a${Math.ceil(readyAt)}`
  return delayMs > 0 ? `d${Math.ceil(delayMs)}` : ''
}

function outcomeOf(id: string, reply: Reply, at: number): Sent {
  if (!Array.isArray(reply)) return stored(id)
  const text = String(reply[at])
  if (text === '') return stored(id)
  if (text === 'f') return refused('full', { retryable: true })
  const holder = text.slice(1)
  return text.startsWith('d') ? duplicateOf(holder) : refused('conflict', { id: holder })
}

function refusal(envelope: Envelope, { traits }: Store): Sent | undefined {
  const { idempotencyKey, orderingKey, fairKey, remember = [] } = envelope
  const texts = [
    idempotencyKey,
    orderingKey,
    fairKey,
    ...remember.flatMap(({ key, fingerprint }) => [key, fingerprint]),
  ]
  const windows = remember.every(({ windowMs }) => windowMs >= 0 && windowMs <= DELAY_MAX_MS)
  if (!windows || !texts.every(isStorable)) return refused('invalid')
  return refusalOf(envelope, traits)
}

/** Half characters would become one and the same replacement. */
function isStorable(text: string | undefined): boolean {
  return text === undefined || (text.isWellFormed() && Buffer.byteLength(text) <= KEY_MAX_BYTES)
}

function parts(items: readonly Envelope[]): readonly (readonly Envelope[])[] {
  const all: Envelope[][] = []
  let bytes = 0
  for (const item of items) {
    const size = item.body.byteLength
    const last = all.at(-1)
    const fits = last && last.length < SCRIPT_MESSAGES && bytes + size <= SCRIPT_BYTES
    if (fits) last.push(item)
    else all.push([item])
    bytes = fits ? bytes + size : size
  }
  return all
}
