import type { StandardSchemaV1 } from '@standard-schema/spec'
import { jsonCodec } from '../codec/json.ts'
import { isKept } from '../model/kept-text.ts'
import { isObject, read } from '../model/probe.ts'
import { type Problems, problems, show } from '../model/problems.ts'
import { resolveBreaker } from './breaker-choice.ts'
import { resolveCapacity } from './capacity-choice.ts'
import { resolveConcurrencyLimit } from './concurrency-limit-choice.ts'
import type { QueueDefinition, QueueOptions, RetryOptions } from './queue.ts'
import { resolveRateLimit } from './rate-limit-choice.ts'

const DAY_MS = 86_400_000
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/
const KEYS = [
  'name',
  'owner',
  'payload',
  'idempotencyKey',
  'orderingKey',
  'onDead',
  'delayed',
  'handlerTimeoutMs',
  'retry',
  'dedupe',
  'capacity',
  'priorities',
  'ageingMs',
  'fairBy',
  'fairWeight',
  'downstream',
  'breaker',
  'gate',
  'rateLimit',
  'concurrencyLimit',
  'classify',
  'codec',
]

/**
 * Defines a queue: its name, its owner, the schema of its payload, and how it fails.
 * @example
 * const emails = defineQueue({ name: 'emails', owner: 'team-growth', payload: z.object({ to: z.string() }) })
 * @throws MILLRACE_INVALID_OPTIONS with every problem at once.
 */
export function defineQueue<Schema extends StandardSchemaV1>(
  options: QueueOptions<Schema>,
): QueueDefinition<StandardSchemaV1.InferInput<Schema>, StandardSchemaV1.InferOutput<Schema>> {
  type In = StandardSchemaV1.InferInput<Schema>
  type Out = StandardSchemaV1.InferOutput<Schema>
  const found = problems(`queue ${show(read(options, 'name'))}`)
  found.knownKeys(options, KEYS)
  checkNestedKeys(options, found)
  checkIdentity(options, found)
  const schema: StandardSchemaV1<In, Out> = options.payload
  const queue: QueueDefinition<In, Out> = {
    name: options.name,
    owner: options.owner,
    schema,
    ...(options.idempotencyKey ? { idempotencyKey: options.idempotencyKey } : {}),
    ...resolveOrder<Out>(options, found),
    ...resolveFairness<Out>(options, found),
    handlerTimeoutMs: found.number('handlerTimeoutMs', options.handlerTimeoutMs, {
      min: 1,
      max: DAY_MS / 2,
      default: 30_000,
    }),
    retry: resolveRetry(options.retry, found),
    dedupe: {
      windowMs: found.number('dedupe.windowMs', options.dedupe?.windowMs, {
        min: 1_000,
        max: 30 * DAY_MS,
        default: DAY_MS,
      }),
    },
    capacity: resolveCapacity(options, found),
    priorities:
      options.priorities === undefined
        ? undefined
        : found.number('priorities', options.priorities, { min: 2, max: 10 }),
    ageingMs: resolveAgeing(options, found),
    ...(options.downstream ? { downstream: options.downstream } : {}),
    rateLimit: resolveRateLimit(options.rateLimit, found),
    concurrencyLimit: resolveConcurrencyLimit(options.concurrencyLimit, found),
    breaker: resolveBreaker(options.downstream, options, found),
    classify: options.classify,
    codec: options.codec ?? jsonCodec,
  }
  found.throwIfAny()
  return Object.freeze(queue)
}

function resolveAgeing(
  { ageingMs }: { readonly ageingMs?: number | undefined },
  found: Problems,
): number | undefined {
  if (ageingMs === undefined) return undefined
  return found.number('ageingMs', ageingMs, { min: 1, max: 30 * DAY_MS })
}

function resolveFairness<Out>(
  { fairBy, fairWeight }: Pick<QueueDefinition<unknown, Out>, 'fairBy' | 'fairWeight'>,
  found: Problems,
): Pick<QueueDefinition<unknown, Out>, 'fairBy' | 'fairWeight'> {
  found.optionalFunction('fairBy', fairBy)
  found.optionalFunction('fairWeight', fairWeight)
  if (fairBy === undefined) {
    if (fairWeight !== undefined) found.add('fairWeight: has no meaning without fairBy')
    return {}
  }
  return fairWeight === undefined ? { fairBy } : { fairBy, fairWeight }
}

/** Untyped callers may give any of the three without the others. */
interface AnyOrder<Out> {
  readonly orderingKey?: ((payload: Out) => string) | undefined
  readonly onDead?: unknown
  readonly delayed?: unknown
}

function resolveOrder<Out>(
  { orderingKey, onDead, delayed }: AnyOrder<Out>,
  found: Problems,
): Pick<QueueDefinition<unknown, Out>, 'orderingKey' | 'order'> {
  found.optionalFunction('orderingKey', orderingKey)
  if (orderingKey === undefined) {
    if (onDead !== undefined) found.add('onDead: has no meaning without orderingKey')
    if (delayed !== undefined) found.add('delayed: has no meaning without orderingKey')
    return {}
  }
  const isOnDead = onDead === 'continue' || onDead === 'halt-key'
  if (!isOnDead) {
    found.add(
      `onDead: with orderingKey expected "continue" (the next message of the key runs) or "halt-key" (the key stands still until somebody decides), got ${show(onDead)}`,
    )
  }
  const delays = delayed ?? 'refuse'
  const isDelayed = delays === 'refuse' || delays === 'wait'
  if (!isDelayed) found.add(`delayed: expected "refuse" or "wait", got ${show(delayed)}`)
  return isOnDead && isDelayed ? { orderingKey, order: { onDead, delayed: delays } } : {}
}

const NESTED = {
  retry: ['attempts', 'baseMs', 'maxMs', 'jitter'],
  dedupe: ['windowMs'],
} as const

/** A misspelt limit would otherwise be the default without a word. */
function checkNestedKeys(options: object, found: Problems): void {
  for (const [name, known] of Object.entries(NESTED)) {
    const value = read(options, name)
    if (value === undefined) continue
    found.knownKeys(value, known, name)
  }
}

/** Untyped callers exist (JavaScript, config files), so what is checked is unknown. */
interface Identity {
  readonly name: unknown
  readonly owner: unknown
  readonly payload: unknown
  readonly idempotencyKey?: unknown
  readonly classify?: unknown
  readonly codec?: unknown
}

function checkIdentity(options: Identity, found: Problems): void {
  if (typeof options.name !== 'string' || !NAME.test(options.name)) {
    found.add(
      `name: expected 1 to 100 of letters, digits, ".", "_" and "-" that start with a letter or digit, got ${show(options.name)}`,
    )
  }
  if (!isOwner(options.owner)) {
    found.add(
      `owner: expected the team or person who watches the dead letters, without control characters and lone surrogates, got ${show(options.owner)}`,
    )
  }
  const schema = options.payload
  if (!isObject(schema) || !('~standard' in schema)) {
    found.add(`payload: expected a Standard Schema (zod, valibot, arktype), got ${show(schema)}`)
  }
  found.optionalFunction('idempotencyKey', options.idempotencyKey)
  found.optionalFunction('classify', options.classify)
  checkCodec(options.codec, found)
}

/** Written to databases, brokers and terminals: what one of them does not keep would be found at the start, or never. */
function isOwner(owner: unknown): boolean {
  return typeof owner === 'string' && owner.trim() !== '' && isKept(owner) && !/\p{Cc}/u.test(owner)
}

function checkCodec(codec: unknown, found: Problems): void {
  if (codec === undefined) return
  const missing = [
    ...(typeof read(codec, 'contentType') === 'string' ? [] : ['contentType']),
    ...['encode', 'decode'].filter((name) => typeof read(codec, name) !== 'function'),
  ]
  if (missing.length > 0) {
    found.add(
      `codec: expected { contentType, encode(payload), decode(bytes) }, got ${show(codec)} without ${missing.join(', ')}`,
    )
  }
}

function resolveRetry(retry: Partial<RetryOptions> | undefined, found: Problems): RetryOptions {
  const maxMs = found.number('retry.maxMs', retry?.maxMs, {
    min: 1,
    max: 30 * DAY_MS,
    default: 3_600_000,
  })
  const jitter: unknown = retry?.jitter ?? 'full'
  if (jitter !== 'full') {
    found.add(`retry.jitter: expected "full" (it cannot be switched off), got ${show(jitter)}`)
  }
  return {
    attempts: found.number('retry.attempts', retry?.attempts, { min: 1, max: 1_000, default: 8 }),
    baseMs: found.number('retry.baseMs', retry?.baseMs, {
      min: 1,
      max: maxMs,
      default: Math.min(1_000, maxMs),
    }),
    maxMs,
    jitter: 'full',
  }
}
