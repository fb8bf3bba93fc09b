import { type Cancel, type Clock, pause } from '../model/clock.ts'
import type { Sent } from '../model/delivery.ts'
import type { Envelope } from '../model/envelope.ts'
import type { KeyedMessage, Reservation } from '../store/key-memory.ts'
import type { Store } from '../store/store.ts'
import { duplicateOf, refused } from '../transport/outcomes.ts'
import type { SendOptions, Transport } from '../transport/transport.ts'
import { chunks } from './chunks.ts'

/** A sender that died keeps its keys from other ids for this long. Who lives, and still sends, reserves them again. */
const HOLD_MS = 15_000
const AGAIN_MS = HOLD_MS / 3
/** How long to wait for another sender that is just sending with the same key. */
const WAIT_MAX_MS = 10_000
const WAIT_FIRST_MS = 5
const WAIT_LONGEST_MS = 250

/**
 * Remembers senders' keys in the store, for brokers that cannot. Reserve, send, confirm: a crash in between lets the same id
 * send again, so it may double a message and never loses one. Who meets a key that is just being sent waits for its end.
 */
export function rememberedKeys(inner: Transport, store: Store, clock: Clock): Transport {
  return {
    ...inner,
    traits: { ...inner.traits, dedupe: { windowMs: 'any' } },
    send: async (queue, batch, options) => {
      if (!batch.some(hasKeys)) return inner.send(queue, batch, options)
      const items = batch.map((envelope): Item => ({ envelope, outcome: undefined }))
      const giveUpAt = clock.now() + WAIT_MAX_MS
      for (let waitMs = WAIT_FIRST_MS; ; waitMs = Math.min(waitMs * 2, WAIT_LONGEST_MS)) {
        const sentSome = await sendReserved({ inner, store, clock, queue, items, options })
        if (items.every(({ outcome }) => outcome !== undefined)) break
        if (options.signal.aborted || clock.now() >= giveUpAt) break
        // What waits for a message of this very batch can be judged at once.
        if (!sentSome) await pause(clock, waitMs, options.signal)
      }
      return items.map(({ outcome, envelope }) => outcome ?? heldKey(envelope))
    },
  }
}

/** One message of a batch, which may hold the same one twice. */
interface Item {
  readonly envelope: Envelope
  outcome: Sent | undefined
}

interface Round {
  readonly inner: Transport
  readonly store: Store
  readonly clock: Clock
  readonly queue: string
  readonly items: readonly Item[]
  readonly options: SendOptions
}

/** Judges what has no outcome yet, and sends what may be sent; answers whether something was. */
async function sendReserved(round: Round): Promise<boolean> {
  const { inner, clock, queue, items, options } = round
  const open = items.filter(({ outcome }) => outcome === undefined)
  const askedAt = clock.now()
  const held = await reserve(round, open.filter(isKeyed))
  // Whoever was frozen meanwhile may have lost them to another sender, who may be done.
  if (clock.now() - askedAt >= HOLD_MS) return false
  const ready = open.filter((item) => item.outcome === undefined && !held.has(item))
  if (ready.length === 0) return false
  const keyed = ready.filter(isKeyed)
  const reserved = keepReserved(round, keyed)
  try {
    const envelopes = ready.map(({ envelope: { remember: _, ...envelope } }) => envelope)
    const sent = await inner.send(queue, envelopes, options)
    for (const [i, item] of ready.entries()) item.outcome = sent[i] ?? refused('unknown')
  } finally {
    await reserved.end()
  }
  await rememberEnds(round.store, queue, keyed)
  return true
}

/** Gives its outcome to what must not be sent; answers what somebody else is just sending. */
async function reserve(
  { store, queue }: Round,
  keyed: readonly Item[],
): Promise<ReadonlySet<Item>> {
  const held = new Set<Item>()
  for (const part of chunks(keyed, store.traits.limits.batch)) {
    const reservations = await store.keys.reserve(queue, part.map(keysOf), HOLD_MS)
    for (const [i, item] of part.entries()) {
      const reservation = reservations[i]
      if (reservation?.as === 'held') held.add(item)
      else item.outcome = refusalOf(reservation)
    }
  }
  return held
}

/** Until its end, which waits for what is on its way: a reservation that came behind a key's end would hold it anew. */
function keepReserved(
  { store, clock, queue }: Round,
  keyed: readonly Item[],
): { end(): Promise<void> } {
  if (keyed.length === 0) return { end: async () => undefined }
  let isOver = false
  let asked = Promise.resolve()
  const again = async (): Promise<void> => {
    try {
      for (const part of chunks(keyed, store.traits.limits.batch)) {
        await store.keys.reserve(queue, part.map(keysOf), HOLD_MS)
      }
    } catch {
      // A store that is away now may be back before the reservation ends.
    }
    if (!isOver) cancel = arm()
  }
  const arm = (): Cancel =>
    clock.after(AGAIN_MS, () => {
      asked = again()
    })
  let cancel = arm()
  return {
    async end() {
      isOver = true
      cancel()
      await asked
    },
  }
}

async function rememberEnds(store: Store, queue: string, sent: readonly Item[]): Promise<void> {
  const { batch } = store.traits.limits
  for (const part of chunks(sent.filter(isCertainlyNotStored), batch)) {
    // Without it they are free when the reservation ends.
    await store.keys.free(queue, part.map(keysOf)).catch(() => undefined)
  }
  for (const part of chunks(sent.filter(isStored), batch)) {
    // The messages are with the broker. Without this their keys would be forgotten, so the sender is told to come again.
    await store.keys.confirm(queue, part.map(keysOf)).catch((cause: unknown) => {
      const fault = {
        ...store.diagnose(cause),
        outcome: 'unknown',
        retryable: true,
        cause,
      } as const
      for (const item of part) item.outcome = { ok: false, fault }
    })
  }
}

function heldKey({ remember = [] }: Envelope): Sent {
  if (remember.length === 0) return refused('throttled', { retryable: true })
  const keys = remember.map(({ kind, key }) => `${kind} key "${key}"`).join(' or ')
  const cause = new Error(
    `another sender is just sending with ${keys}, or died while it did and holds it for ${HOLD_MS / 1_000} s`,
  )
  return refused('throttled', { retryable: true, cause })
}

function hasKeys({ remember = [] }: Envelope): boolean {
  return remember.length > 0
}

function isKeyed({ envelope }: Item): boolean {
  return hasKeys(envelope)
}

function keysOf({ envelope: { id, remember = [] } }: Item): KeyedMessage {
  return { id, keys: remember }
}

function isStored({ outcome }: Item): boolean {
  return outcome?.ok === true
}

function isCertainlyNotStored({ outcome }: Item): boolean {
  return outcome?.ok === false && outcome.fault.outcome === 'notApplied'
}

/** Undefined: it may be sent. */
function refusalOf(
  reservation: Exclude<Reservation, { as: 'held' }> | undefined,
): Sent | undefined {
  switch (reservation?.as) {
    case 'reserved':
      return undefined
    case 'duplicate':
      return duplicateOf(reservation.id)
    case 'conflict':
      return refused('conflict', { id: reservation.id })
    case undefined:
      return refused('unknown')
  }
}
