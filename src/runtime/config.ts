import type { WorkOptions } from './app.ts'
import type { MillraceOptions } from './create.ts'
import type { IntakeOptions } from './intake-options.ts'
import type { Handler } from './message.ts'
import type { AnyQueue, QueueDefinition } from './queue.ts'

/** What a config file's default export holds: the app's options, and what `millrace start` runs. */
export interface MillraceConfig<Tx = unknown> extends MillraceOptions<Tx> {
  readonly workers?: readonly WorkerConfig<Tx>[]
  /** Run the HTTP intake beside the workers; `{}` for one with its defaults. Its logger is the app's unless it has one. */
  readonly intake?: IntakeOptions
}

// A record, so that the compiler misses the key that is forgotten here.
const keys: Readonly<Record<keyof MillraceConfig, true>> = {
  transport: true,
  store: true,
  queues: true,
  inbox: true,
  outbox: true,
  claimCheck: true,
  migrate: true,
  signals: true,
  clock: true,
  random: true,
  logger: true,
  onDeadLetter: true,
  redriveWindowMs: true,
  workers: true,
  intake: true,
}

/** All that a config may hold; createMillrace takes a config whole and leaves what is for `millrace start` alone. */
export const CONFIG_KEYS: readonly string[] = Object.keys(keys)

/** Made by `defineWorker`, which keeps queue and handler in step. */
export interface WorkerConfig<Tx = unknown> extends WorkOptions {
  readonly queue: AnyQueue
  /** A method, so that a worker of any payload is a WorkerConfig. */
  handler(...args: Parameters<Handler<never, Tx>>): unknown
}

/** Types a config file's default export. @example export default defineConfig({ transport, queues, workers }) */
export function defineConfig<Tx>(config: MillraceConfig<Tx>): MillraceConfig<Tx> {
  return config
}

/**
 * Pairs a queue with its handler for a config file. A handler that uses `ctx.tx` says whose transaction it is:
 * `(message, ctx: HandlerContext<DatabaseSync>) => …`.
 */
export function defineWorker<In, Out, Tx = unknown>(
  queue: QueueDefinition<In, Out>,
  handler: Handler<Out, Tx>,
  options: WorkOptions = {},
): WorkerConfig<Tx> {
  return { queue, handler, ...options }
}
