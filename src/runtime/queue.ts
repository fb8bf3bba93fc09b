import type { StandardSchemaV1 } from '@standard-schema/spec'
import type { Codec } from '../codec/codec.ts'
import type { Classify } from '../model/classify.ts'
import type { BreakerChoice, BreakerOptions } from './breaker-choice.ts'

/** What a queue is. `defineQueue` fills the defaults and refuses what cannot work. */
export interface QueueOptions<Schema extends StandardSchemaV1> {
  /** 1 to 100 of letters, digits, `.`, `_`, `-`; starts with a letter or digit. */
  readonly name: string
  /** Who watches the dead letters: a team or a person. */
  readonly owner: string
  /** Any Standard Schema (zod, valibot, arktype). */
  readonly payload: Schema
  /** Identity of the effect, for the inbox. Default: the message id. */
  readonly idempotencyKey?: (payload: StandardSchemaV1.InferOutput<Schema>) => string
  /** How long one run may take, in ms; 1 to 43,200,000 (12 h). Default 30,000. */
  readonly handlerTimeoutMs?: number
  readonly retry?: Partial<RetryOptions>
  readonly dedupe?: {
    /** How long keys given at send are remembered, in ms; 1,000 to 30 days. Default 86,400,000 (24 h). */
    readonly windowMs: number
  }
  /** `unbounded` must be written out. Default { maxDepth: 100_000, whenFull: 'reject' }. */
  readonly capacity?: { readonly maxDepth: number; readonly whenFull?: 'reject' } | 'unbounded'
  /**
   * Names the system that the handler calls for a payload (`(payload) => new URL(payload.url).host`), 1 to 255 characters. With it the
   * queue has a circuit breaker for each.
   */
  readonly downstream?: (payload: StandardSchemaV1.InferOutput<Schema>) => string
  /** Needs `downstream`. Default: see BreakerOptions; shared through the store. */
  readonly breaker?: BreakerOptions
  /** Asked before the built-in classifier; undefined leaves it to the built-in one. */
  readonly classify?: Classify
  /** How payloads become bytes. Default: JSON. */
  readonly codec?: Codec
}

export interface RetryOptions {
  /** Counted runs, then dead; 1 to 1,000. Default 8. */
  readonly attempts: number
  /** First backoff, in ms; 1 to maxMs. Default 1,000. */
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
  readonly handlerTimeoutMs: number
  readonly retry: RetryOptions
  readonly dedupe: { readonly windowMs: number }
  readonly capacity: { readonly maxDepth: number; readonly whenFull: 'reject' } | 'unbounded'
  /** A method, as idempotencyKey. */
  downstream?(payload: Out): string
  readonly breaker: BreakerChoice | undefined
  readonly classify: Classify | undefined
  readonly codec: Codec
}

export type AnyQueue = QueueDefinition<unknown, unknown>
