import './model/node-version.ts'

export type * from './admin/admin.ts'
export type { Codec } from './codec/codec.ts'
export type { Inbox, InboxConnector } from './inbox/inbox.ts'
export type { Classification, Classify } from './model/classify.ts'
export { type Clock, systemClock } from './model/clock.ts'
export * from './model/errors.ts'
export type { AttemptRecord, ErrorClass } from './model/history.ts'
export { type Logger, silentLogger } from './model/logger.ts'
export * from './model/partial-batch-error.ts'
export type { Outbox, OutboxConnector } from './outbox/outbox.ts'
export type * from './runtime/app.ts'
export type { BreakerOptions, GateOptions } from './runtime/breaker-choice.ts'
export type { ConcurrencyLimitOptions } from './runtime/concurrency-limit-choice.ts'
export {
  defineConfig,
  defineWorker,
  type MillraceConfig,
  type WorkerConfig,
} from './runtime/config.ts'
export type * from './runtime/create.ts'
export { createMillrace } from './runtime/create-millrace.ts'
export { defineQueue } from './runtime/define-queue.ts'
export type * from './runtime/message.ts'
export type * from './runtime/queue.ts'
export type { RateLimitOptions } from './runtime/rate-limit-choice.ts'
export type * from './runtime/send.ts'
export type { BatchSendOptions } from './runtime/sender.ts'
export { onSignals, type SignalActs, type StopSignal } from './runtime/signals.ts'
export type { Connector } from './transport/transport.ts'
