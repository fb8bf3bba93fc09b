import type { RememberedKey } from '../model/envelope.ts'

/**
 * Remembers senders' keys, for brokers that cannot. A send over it takes three steps: reserve, send, confirm. Between the
 * first and the last a crash must lose nothing, so a reservation alone is no memory: it ends after `holdMs`, and its own id
 * may take it again at any time, because sending the same message again is safe and forgetting it is not.
 */
export interface KeyMemory {
  /** One outcome per message, in order. Takes all keys of a message or none. Two messages of one batch count in their order. */
  reserve(
    queue: string,
    batch: readonly KeyedMessage[],
    holdMs: number,
  ): Promise<readonly Reservation[]>
  /**
   * The message was stored: its keys are remembered from now on for their windows, unless one is remembered for another
   * message already. Harmless when repeated.
   */
  confirm(queue: string, batch: readonly KeyedMessage[]): Promise<void>
  /** The message was certainly not stored: its unconfirmed keys are free. Others stay. */
  free(queue: string, batch: readonly KeyedMessage[]): Promise<void>
}

export interface KeyedMessage {
  readonly id: string
  readonly keys: readonly RememberedKey[]
}

export type Reservation =
  /** Send it. Also for the id that holds the reservation already, or held it when it was not confirmed. */
  | { readonly as: 'reserved' }
  /** A key is remembered for `id` (the message's own id, too: it was stored); send nothing. */
  | { readonly as: 'duplicate'; readonly id: string }
  /** A key is remembered for `id` with another fingerprint. */
  | { readonly as: 'conflict'; readonly id: string }
  /** Another sender is just sending `id` with this key, whatever its fingerprint; that may still fail, so ask again. */
  | { readonly as: 'held'; readonly id: string }
