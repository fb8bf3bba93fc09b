import { type Clock, pause } from '../../model/clock.ts'
import type { Logger } from '../../model/logger.ts'
import type { PgListening, PgPool } from '../../sql/pg-pool.ts'
import { NOTIFY } from './statements.ts'

/** Hears of new messages through LISTEN. A hint, no more: receives poll beneath it. */
export interface Ear {
  /** False while there is no listening connection; then receives poll more often. */
  readonly listens: boolean
  close(): void
}

export interface EarOptions {
  readonly pool: PgPool
  readonly channel: string
  readonly clock: Clock
  readonly random: () => number
  readonly logger: Logger
  /** Something new for this queue; for all of them after a gap. */
  readonly hear: (queueId: number | undefined) => void
}

/** A connection can die without a word, so it is asked this often. */
const HEARTBEAT_MS = 10_000
const BACKOFF_MIN_MS = 250
const BACKOFF_MAX_MS = 10_000
/** How long a notification may take from one of our connections to the other. */
const PROOF_MS = 3_000
const PROOF = 'proof:'

export const deafEar: Ear = { listens: false, close() {} }

export function openEar(options: EarOptions): Ear {
  const closing = new AbortController()
  const state: State = { ...options, closing: closing.signal, listens: false }
  void keepListening(state)
  return {
    get listens() {
      return state.listens
    },
    close: () => closing.abort(),
  }
}

interface State extends EarOptions {
  readonly closing: AbortSignal
  listens: boolean
}

async function keepListening(state: State): Promise<void> {
  const { clock, closing, logger, random } = state
  for (let failures = 0; !closing.aborted; ) {
    const outcome = await listenOnce(state)
    state.listens = false
    if (closing.aborted) return
    if (outcome.proven) failures = 0
    else failures += 1
    if (failures === 1) {
      logger.warn('millrace does not hear of new messages by LISTEN and polls more often', {
        error: outcome.error,
      })
    }
    const ceilingMs = Math.min(BACKOFF_MAX_MS, BACKOFF_MIN_MS * 2 ** Math.min(failures, 10))
    await pause(clock, BACKOFF_MIN_MS + random() * (ceilingMs - BACKOFF_MIN_MS), closing)
  }
}

interface Listened {
  readonly proven: boolean
  readonly error: unknown
}

/** Listens until the connection is lost or we close. */
async function listenOnce(state: State): Promise<Listened> {
  const { pool, channel, hear, clock, closing } = state
  const lost = new AbortController()
  const proof = new AbortController()
  let listening: PgListening | undefined
  try {
    if (!pool.listen) throw new Error('this pool cannot give a connection of its own')
    listening = await pool.listen(channel, {
      hear: (payload) => {
        if (payload.startsWith(PROOF)) proof.abort()
        else for (const id of queueIds(payload)) hear(id)
      },
      lost: (error) => lost.abort(error),
    })
    await prove(state, AbortSignal.any([closing, lost.signal]), proof.signal)
    state.listens = true
    // What was sent before we listened was not announced to us.
    hear(undefined)
    const over = AbortSignal.any([closing, lost.signal])
    while (!over.aborted) {
      await pause(clock, HEARTBEAT_MS, over)
      if (!over.aborted) await listening.ping()
    }
    return { proven: true, error: lost.signal.reason }
  } catch (error) {
    return { proven: proof.signal.aborted, error }
  } finally {
    listening?.close()
    if (state.listens && !closing.aborted) hear(undefined)
  }
}

/** Behind a pooler in transaction mode LISTEN succeeds and nothing is ever heard. */
async function prove(state: State, over: AbortSignal, proof: AbortSignal): Promise<void> {
  const { pool, channel, clock } = state
  await pool.query(NOTIFY, [channel, PROOF])
  await pause(clock, PROOF_MS, AbortSignal.any([over, proof]))
  if (proof.aborted || over.aborted) return
  throw new Error(
    'LISTEN was accepted but nothing is heard, as behind PgBouncer in transaction mode; pass listen: false or a direct address',
  )
}

function queueIds(payload: string): readonly (number | undefined)[] {
  const ids = payload.split(',').map(Number)
  return ids.every(Number.isInteger) ? ids : [undefined]
}
