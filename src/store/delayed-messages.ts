import type { Envelope } from '../model/envelope.ts'

/**
 * Messages that wait for their time outside the broker. They are taken, sent to the broker, and only then removed. What a
 * message has been through travels in its headers, as on the broker. Of an envelope everything is kept but `delayMs`,
 * `readyAt` and `remember`.
 */
export interface DelayedMessages {
  /**
   * Stores each. An id that waits already is left as it is, so that a copy may be put again; one that was taken is put
   * anew: its message may have been sent, have failed and come back before its taker says `sent`.
   */
  put(queue: string, batch: readonly DelayedMessage[]): Promise<void>
  /**
   * Takes up to `max` that are due, earliest first. A taken one comes back after `leaseMs` unless it was removed, so a taker
   * that died loses nothing.
   */
  take(
    queue: string,
    options: { readonly max: number; readonly leaseMs: number },
  ): Promise<readonly TakenMessage[]>
  /** After the confirmed send: removes those that were not put anew since they were taken. Harmless when repeated. */
  sent(queue: string, taken: readonly TakenMessage[]): Promise<void>
  /** Removes them whatever their state, as to cancel them. Answers the ids that were there. */
  remove(queue: string, ids: readonly string[]): Promise<readonly string[]>
  get(queue: string, id: string): Promise<DueMessage | undefined>
  /** All that are here, due and taken ones too. */
  count(queue: string): Promise<number>
  /** In ms from now, 0 when one can be taken; undefined when none waits. A hint for when to look again. */
  nextDueMs(queue: string): Promise<number | undefined>
}

export interface DelayedMessage {
  readonly envelope: Envelope
  /** From now, by the store's clock. */
  readonly delayMs: number
}

export interface DueMessage {
  readonly envelope: Envelope
  /** Epoch ms by the store's clock. */
  readonly dueAt: number
}

export interface TakenMessage extends DueMessage {
  /** Another one for each time that the id was put. */
  readonly placed: bigint
}
