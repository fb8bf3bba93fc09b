import type { Admin } from '../admin/admin.ts'
import type { AdaptiveConcurrency } from '../flow/adapt-slots.ts'
import type { KillSwitchOptions } from '../flow/kill-switch.ts'
import type { Handler } from './message.ts'
import type { AnyQueue, QueueDefinition } from './queue.ts'
import type { SendOptions, SendResult } from './send.ts'
import type { BatchSendOptions } from './sender.ts'

/** Queues, workers and their administration over one transport. Made by `createMillrace`. */
export interface App<Tx = unknown> {
  readonly queues: readonly AnyQueue[]
  /**
   * Stores one message; resolves when the backend confirmed it. Works before `start`. With a SQLite handle as `tx` it has
   * happened when the call returns.
   * @throws at once, instead of rejecting: MILLRACE_TX_ASYNC, for an asynchronous schema and a SQLite handle as `tx`
   */
  send<In, Out>(
    queue: QueueDefinition<In, Out>,
    payload: NoInfer<In>,
    options?: SendOptions,
  ): Promise<SendResult>
  /** Stores all or none on memory and SQL; results in the order of the payloads. */
  sendBatch<In, Out>(
    queue: QueueDefinition<In, Out>,
    payloads: readonly NoInfer<In>[],
    options?: BatchSendOptions<NoInfer<In>>,
  ): Promise<readonly SendResult[]>
  /** Registers the handler of a queue; it runs from `start` on. */
  work<In, Out>(
    queue: QueueDefinition<In, Out>,
    handler: Handler<Out, Tx>,
    options?: WorkOptions,
  ): void
  start(): Promise<void>
  /** Drains until `timeoutMs`, sends that have begun too; then aborts and releases uncounted. Always settles, whatever the backend does. */
  close(options?: CloseOptions): Promise<void>
  health(): Promise<Health>
  readonly admin: Admin
  /** Counters since the start, per queue. */
  counters(): Readonly<Record<string, QueueCounters>>
}

export interface WorkOptions {
  /**
   * Runs side by side in this process, 1 to 10,000, or bounds between which their number follows the queue. Default 10.
   */
  readonly concurrency?: number | AdaptiveConcurrency
  /** Stops receiving for a while when handlers fail all alike; `true` for its defaults. Default false. */
  readonly killSwitch?: boolean | KillSwitchOptions
}

export interface CloseOptions {
  /** How long running handlers, and sends that have begun, may go on, in ms. Default 30,000. */
  readonly timeoutMs?: number
}

export interface Health {
  readonly ok: boolean
  /** One sentence for each thing that is wrong; empty when ok. */
  readonly reasons: readonly string[]
}

export interface QueueCounters {
  readonly sent: number
  readonly started: number
  readonly acked: number
  readonly released: number
  readonly dead: number
  /** Deliveries whose key the inbox knew: acked without calling the handler. */
  readonly duplicates: number
  /** Runs, and calls of asynchronous schemas, that went on after their timeout; now. */
  readonly abandoned: number
  readonly lost: number
  /** Removed for newer ones because the queue was full (`whenFull: 'shed'`), by sends of this process. */
  readonly shed: number
}
