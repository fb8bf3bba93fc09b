import type { Envelope } from '../../model/envelope.ts'
import { type AttemptHistory, freshHistory } from '../../model/history.ts'
import type { Slotted } from './heap.ts'

/** A message that waits or is in flight. */
export interface Entry extends Slotted {
  readonly envelope: Envelope
  readonly sentAt: number
  /** The order of sending. */
  readonly seq: number
  /** `behind`: an earlier message of its ordering key has not ended. */
  state: 'ready' | 'scheduled' | 'in flight' | 'behind' | 'gone'
  readyAt: number
  /** In a line that goes by fair keys. */
  place: number
  leaseEndsAt: number
  history: AttemptHistory
  /** Quarantined: its last holder died. */
  alone: boolean
  deliveries: number
  fence: bigint
}

export interface NewEntry {
  readonly envelope: Envelope
  readonly sentAt: number
  readonly seq: number
  readonly history?: AttemptHistory
}

export function newEntry(fields: NewEntry): Entry {
  return {
    envelope: fields.envelope,
    sentAt: fields.sentAt,
    seq: fields.seq,
    state: 'gone',
    readyAt: fields.sentAt,
    place: 0,
    leaseEndsAt: 0,
    history: fields.history ?? freshHistory,
    alone: false,
    deliveries: 0,
    fence: 0n,
    slot: -1,
  }
}
