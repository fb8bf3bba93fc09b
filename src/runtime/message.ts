import type { Logger } from '../model/logger.ts'
import type { QueueDefinition } from './queue.ts'
import type { SendOptions, SendResult } from './send.ts'

/** What a handler receives. */
export interface Message<Payload> {
  readonly id: string
  /** The schema's output. */
  readonly payload: Payload
  /** Identity of the effect: the same on every retry, redrive and duplicate. */
  readonly idempotencyKey: string
  /** 1 for the first run; counted runs only. */
  readonly attempt: number
  readonly headers: Readonly<Record<string, string>>
  /** Epoch ms by the store's clock. */
  readonly sentAt: number
}

/** What a handler may do besides its own work. */
export interface HandlerContext<Tx> {
  /** Aborts on timeout, lost claim and shutdown; `reason` is a MillraceError that says which. */
  readonly signal: AbortSignal
  /**
   * Runs the effect in a short transaction of the inbox's database, at most once per attempt. Effect, idempotency
   * record, fence and (same database) the ack commit together. On SQLite the function is synchronous.
   * Once it has committed, the message is acked whatever the handler throws after it.
   * @throws MILLRACE_INBOX_REQUIRED, MILLRACE_TX_ONCE, MILLRACE_TX_ASYNC, MILLRACE_LEASE_LOST
   */
  tx<T>(effect: (tx: Tx) => T | Promise<T>): Promise<T>
  readonly log: Logger
  /** Joins the transaction inside `ctx.tx`, equals `app.send` elsewhere. Throws once the handler has returned. */
  send<In, Out>(
    queue: QueueDefinition<In, Out>,
    payload: NoInfer<In>,
    options?: SendOptions,
  ): Promise<SendResult>
}

export type Handler<Payload, Tx> = (
  message: Message<Payload>,
  ctx: HandlerContext<Tx>,
) => unknown | Promise<unknown>
