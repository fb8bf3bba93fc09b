import type { StandardSchemaV1 } from '@standard-schema/spec'
import type { Codec } from '../codec/codec.ts'
import type { Classify } from '../model/classify.ts'
import type { BreakerChoice, BreakerOptions, GateOptions } from './breaker-choice.ts'
import type { CapacityChoice, CapacityOptions } from './capacity-choice.ts'
import type { ConcurrencyLimitChoice, ConcurrencyLimitOptions } from './concurrency-limit-choice.ts'
import type { RateLimitChoice, RateLimitOptions } from './rate-limit-choice.ts'

/** What a queue is. `defineQueue` fills the defaults and refuses what cannot work. */
export type QueueOptions<Schema extends StandardSchemaV1> = QueueBasics<Schema> &
  (OrderOptions<Schema> | { readonly [Name in keyof OrderOptions<Schema>]?: undefined })

/** Messages of one key are handled one after another, in the order sent; other keys run beside them. */
export interface OrderOptions<Schema extends StandardSchemaV1> {
  /** What must stay in order: an account, a customer. 1 to 255 printable ASCII characters without spaces. */
  readonly orderingKey: (payload: StandardSchemaV1.InferOutput<Schema>) => string
  /**
   * When a message of a key has died. `continue`: the next one runs, and a redrive of the dead one comes after those that were
   * sent meanwhile. `halt-key`: its key stands still until a person resumes or skips it (`app.admin.keys`).
   */
  readonly onDead: 'continue' | 'halt-key'
  /**
   * What a send with a delay does to its key. `refuse`: it is an error. `wait`: the key waits for it, as those sent after it
   * must not overtake it. Default `refuse`.
   */
  readonly delayed?: 'refuse' | 'wait'
}

export interface QueueBasics<Schema extends StandardSchemaV1> {
  /** 1 to 100 of letters, digits, `.`, `_`, `-`; starts with a letter or digit. */
  readonly name: string
  /** Who watches the dead letters: a team or a person. */
  readonly owner: string
  /** Any Standard Schema (zod, valibot, arktype). */
  readonly payload: Schema
  /** Identity of the effect, for the inbox. Default: the message id. */
  readonly idempotencyKey?: (payload: StandardSchemaV1.InferOutput<Schema>) => string
  /** How long one run may take, an asynchronous schema before it included, in ms; 1 to 43,200,000 (12 h); below 100 the log warns at the start. Default 30,000. */
  readonly handlerTimeoutMs?: number
  readonly retry?: Partial<RetryOptions>
  readonly dedupe?: {
    /**
     * How long keys given at send are remembered, in ms; 1,000 to 30 days. Default 86,400,000 (24 h). Without an inbox the log warns at the start
     * of one that is shorter than the retries of a message.
     */
    readonly windowMs: number
  }
  /**
   * How many levels of `priority` its messages have, 2 to 10: 0 to one less. Memory, SQLite, Postgres and Redis have them by themselves; RabbitMQ, NATS and
   * SQS standard get a queue for each level, `<name>-p1` and so on beside the queue itself. Refused at start elsewhere, and there together with
   * `orderingKey`. Default: ten on memory, SQLite, Postgres and Redis, none elsewhere.
   */
  readonly priorities?: number
  /**
   * What a level of `priority` is worth, in ms of waiting: a message is overtaken by those of a higher priority only while they became
   * ready less than that for each level after it, so the lowest of ten waits at most for what became ready up to nine times that
   * after it. 1 to 2,592,000,000 (30 days). Default 60,000. Refused where the queue has no priorities.
   */
  readonly ageingMs?: number
  /**
   * Whose share a message takes among those of its priority that wait: a tenant, an account; 1 to 255 printable ASCII characters without
   * spaces. A message of a key that has none waiting is handed out after at most two of each other key, however many of those wait.
   * Memory, SQLite, Postgres and Redis; refused at start elsewhere.
   */
  readonly fairBy?: (payload: StandardSchemaV1.InferOutput<Schema>) => string
  /** Needs `fairBy`. How many messages of this key go for one of another, 0.01 to 100. Default 1 for each. */
  readonly fairWeight?: (fairKey: string) => number
  /** `unbounded` must be written out. Default { maxDepth: 100_000, whenFull: 'reject' }. */
  readonly capacity?: CapacityOptions
  /**
   * Names the system that the handler calls for a payload (`(payload) => new URL(payload.url).host`), 1 to 255 characters. With it the
   * queue has a circuit breaker for each.
   */
  readonly downstream?: (payload: StandardSchemaV1.InferOutput<Schema>) => string
  /** Needs `downstream`. Default: see BreakerOptions; shared through the store. */
  readonly breaker?: BreakerOptions
  /**
   * Needs `downstream`. When it answers "later" (a 429 with Retry-After), nothing of this queue goes there until then, from any worker of
   * breaker.scope, and few at first afterwards. `false`: each message waits by itself.
   */
  readonly gate?: GateOptions | false
  /** Messages per second, of the queue and of each key, that all workers together let run. Default: as fast as they can. */
  readonly rateLimit?: RateLimitOptions<StandardSchemaV1.InferOutput<Schema>>
  /**
   * How many messages run side by side, of the queue and of each key, in all workers together. Default: as many as the workers'
   * `concurrency` lets.
   */
  readonly concurrencyLimit?: ConcurrencyLimitOptions<StandardSchemaV1.InferOutput<Schema>>
  /** Asked before the built-in classifier; undefined leaves it to the built-in one. */
  readonly classify?: Classify
  /** How payloads become bytes. Default: JSON. */
  readonly codec?: Codec
}

export interface RetryOptions {
  /** Counted runs, then dead; 1 to 1,000. Default 8. */
  readonly attempts: number
  /** First backoff, in ms; 1 to maxMs; below 20 the log warns at the start. Default 1,000. */
  readonly baseMs: number
  /** Ceiling of every backoff, in ms; up to 30 days. Default 3,600,000 (1 h). */
  readonly maxMs: number
  /** `full`: anywhere between 0 and the backoff, so that what failed together does not come back together. */
  readonly jitter: 'full'
}

/** A queue with every option resolved and frozen. `In` is what is sent, `Out` what the handler gets. */
export interface QueueDefinition<In = unknown, Out = unknown> {
  readonly name: string
  readonly owner: string
  readonly schema: StandardSchemaV1<In, Out>
  /** Absent: the message id. (A method, so that any queue is an `AnyQueue`.) */
  idempotencyKey?(payload: Out): string
  orderingKey?(payload: Out): string
  /** Absent without an ordering key. */
  readonly order?: { readonly onDead: 'continue' | 'halt-key'; readonly delayed: 'refuse' | 'wait' }
  /** Methods, as idempotencyKey. */
  fairBy?(payload: Out): string
  fairWeight?(fairKey: string): number
  readonly handlerTimeoutMs: number
  readonly retry: RetryOptions
  readonly dedupe: { readonly windowMs: number }
  readonly capacity: CapacityChoice
  /** Undefined: as many as the transport has by itself. */
  readonly priorities: number | undefined
  /** Undefined: the transport's default, a minute where there are priorities. */
  readonly ageingMs: number | undefined
  /** A method, as idempotencyKey. */
  downstream?(payload: Out): string
  readonly breaker: BreakerChoice | undefined
  readonly rateLimit: RateLimitChoice<Out> | undefined
  readonly concurrencyLimit: ConcurrencyLimitChoice<Out> | undefined
  readonly classify: Classify | undefined
  readonly codec: Codec
}

export type AnyQueue = QueueDefinition<unknown, unknown>
