import { sendInParts } from '../layers/in-parts.ts'
import type { Clock } from '../model/clock.ts'
import type { Sent } from '../model/delivery.ts'
import type { Envelope } from '../model/envelope.ts'
import { refused } from '../transport/outcomes.ts'
import type { SendOptions, Transport } from '../transport/transport.ts'
import { heldError } from './fault-error.ts'
import { faultless } from './faultless.ts'
import { gatherer } from './gatherer.ts'
import { type HeldLine, isHeld } from './held-line.ts'

/** Sends of one queue to its backend, outside of transactions of the user's. */
export interface BackendSends {
  /** Gathered with others of the same moment. `onHeld`: called when it waits for somebody's transaction. */
  one(envelope: Envelope, signal: AbortSignal | undefined, onHeld?: () => void): Promise<Sent>
  /** All or none where the backend can. */
  many(
    envelopes: readonly Envelope[],
    signal: AbortSignal | undefined,
    onHeld?: () => void,
  ): Promise<readonly Sent[]>
  /** Messages that are not answered yet. */
  readonly size: number
}

export interface BackendSendsOptions {
  readonly queue: string
  readonly transport: Transport
  readonly clock: Clock
  readonly held: HeldLine
  /** Fires when the app is closed: sends that wait give up. */
  readonly closed: AbortSignal
}

/** A send that somebody's open transaction holds up is this slow, and a backend that is merely busy seldom is. */
const SLOW_MS = 1_000
/** Each may hold a connection of the backend's pool (of 10 on Postgres). */
const FLIGHTS = 4
/** How long what was gathered waits for what others hold, before that waits in line. */
const GATHERED_LOCK_MS = SLOW_MS
/** How long a batch waits for what others hold before it waits in line: any number of batches may be on their way at once. */
const BATCH_LOCK_MS = 100

export function backendSends(options: BackendSendsOptions): BackendSends {
  const { queue, transport, clock, held, closed } = options
  let beside = 0

  const send = (
    envelopes: readonly Envelope[],
    more: Omit<SendOptions, 'signal'> & { readonly signal?: AbortSignal },
  ): Promise<readonly Sent[]> =>
    faultless(transport, envelopes.length, () =>
      transport.send(queue, envelopes, { signal: closed, ...more }),
    )

  const plain = gatherer<Envelope, Sent>({
    maxBatch: transport.traits.limits.sendBatch,
    patience: { clock, ms: SLOW_MS, flights: FLIGHTS },
    flush: (batch) => send(batch, { lockMs: GATHERED_LOCK_MS }),
  })

  const counted = async <T>(messages: number, work: () => Promise<T>): Promise<T> => {
    beside += messages
    try {
      return await work()
    } finally {
      beside -= messages
    }
  }

  const inLine = async (envelope: Envelope, signal: AbortSignal | undefined): Promise<Sent> => {
    const [sent] = await held.enter({
      ...{ queue, signal, key: keyOf(queue, envelope) },
      alone: (lockMs) => send([envelope], { lockMs }),
      together: async () => [await plain.add(envelope)],
      late: () => heldError(queue, [envelope]),
    })
    return sent ?? refused('unknown')
  }

  const atomically = async (
    envelopes: readonly Envelope[],
    own: AbortSignal | undefined,
    onHeld: (() => void) | undefined,
  ): Promise<readonly Sent[]> => {
    const signal = own ? AbortSignal.any([closed, own]) : closed
    if (!transport.traits.atomicBatch) return sendInParts(transport, queue, envelopes, signal)
    const alone = (lockMs: number): Promise<readonly Sent[]> =>
      send(envelopes, { signal, atomic: true, lockMs })
    const sent = await alone(BATCH_LOCK_MS)
    if (!sent.some(isHeld)) return sent
    onHeld?.()
    return held.enter({
      ...{ queue, signal: own, alone, together: () => alone(BATCH_LOCK_MS) },
      // Which of its keys is held is not known, so it waits for itself alone.
      key: `${queue}\0batch\0${envelopes[0]?.id}`,
      late: () => heldError(queue, envelopes),
    })
  }

  return {
    one: async (envelope, signal, onHeld) => {
      const isBehind = !held.isEmpty && held.has(keyOf(queue, envelope))
      const sent = isBehind ? undefined : await plain.add(envelope)
      if (sent !== undefined && !isHeld(sent)) return sent
      onHeld?.()
      return counted(1, () => inLine(envelope, signal))
    },
    many: (envelopes, signal, onHeld) =>
      counted(envelopes.length, () => atomically(envelopes, signal, onHeld)),
    get size() {
      return plain.size + beside
    },
  }
}

/** What may be held of it. Messages of one ordering key stay behind each other, whatever else they have. */
function keyOf(queue: string, { id, orderingKey, remember = [] }: Envelope): string {
  if (orderingKey !== undefined) return `${queue}\0order\0${orderingKey}`
  if (remember.length === 0) return `${queue}\0id\0${id}`
  return [queue, ...remember.flatMap(({ kind, key }) => [kind, key])].join('\0')
}
