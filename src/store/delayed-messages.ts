import type { Envelope } from '../model/envelope.ts'

/**
 * Messages that wait for their time outside the broker. They are taken, sent to the broker, and only then removed. What a
 * message has been through travels in its headers, as on the broker.
 */
export interface DelayedMessages {
  /** Stores each; an id that waits already is left as it is, so that a copy may be put again. */
  put(queue: string, batch: readonly DelayedMessage[]): Promise<void>
  /**
   * Takes up to `max` that are due, earliest first. A taken one comes back after `leaseMs` unless it was removed, so a taker
   * that died loses nothing.
   */
  take(
    queue: string,
    options: { readonly max: number; readonly leaseMs: number },
  ): Promise<readonly DueMessage[]>
  /** After the confirmed send. Answers the ids that were there. */
  remove(queue: string, ids: readonly string[]): Promise<readonly string[]>
  get(queue: string, id: string): Promise<DueMessage | undefined>
  count(queue: string): Promise<number>
  /** In ms from now, 0 when one is due; undefined when none waits. A hint for when to look again. */
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
