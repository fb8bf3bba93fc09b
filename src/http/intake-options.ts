import { type Clock, systemClock } from '../model/clock.ts'
import { OptionsError } from '../model/errors.ts'
import type { Logger } from '../model/logger.ts'
import { silentLogger } from '../model/logger.ts'
import type { App } from '../runtime/app.ts'
import { isLoopbackHost } from './address.ts'

/** The part of an app that an intake needs. */
export type IntakeApp = Pick<App, 'queues' | 'send' | 'sendBatch' | 'health'>

export interface IntakeOptions {
  /** Address to listen on. Anything but loopback needs `tokens`. Default 127.0.0.1. */
  readonly host?: string
  /** 0 takes a free one. Default 4000. */
  readonly port?: number
  /** Bearer tokens that may send, 1 to 1,024 printable ASCII characters each. Default none: whoever reaches the port. */
  readonly tokens?: readonly string[]
  /** Names of the queues that take messages. Default: all queues of the app. */
  readonly queues?: readonly string[]
  /** Larger bodies are 413. In bytes, 1 to 67,108,864. Default 1,048,576. */
  readonly maxBodyBytes?: number
  /** A request must have arrived within this time (408), in ms, 100 to 600,000. Default 10,000. */
  readonly requestTimeoutMs?: number
  /** The backend must have confirmed within this time (503), in ms, 100 to 600,000. Default 10,000. */
  readonly sendTimeoutMs?: number
  /** Open connections, 1 to 100,000. Default 1,000. */
  readonly maxConnections?: number
  /** Where failures that are not the sender's are written. Default: nowhere. */
  readonly logger?: Logger
  /** Default: the machine's. */
  readonly clock?: Clock
}

export interface ResolvedIntakeOptions {
  readonly host: string
  readonly port: number
  readonly tokens: readonly string[]
  readonly queues: ReadonlySet<string>
  readonly maxBodyBytes: number
  readonly requestTimeoutMs: number
  readonly sendTimeoutMs: number
  readonly maxConnections: number
  readonly logger: Logger
  readonly clock: Clock
}

const TOKEN = /^[\x21-\x7e]{1,1024}$/

/** @throws MILLRACE_INVALID_OPTIONS with every problem at once. */
export function resolveIntakeOptions(
  app: IntakeApp,
  options: IntakeOptions,
): ResolvedIntakeOptions {
  const problems: string[] = []
  const number = (
    name: string,
    value: number | undefined,
    min: number,
    max: number,
    by: number,
  ): number => {
    const n = value ?? by
    if (!Number.isInteger(n) || n < min || n > max)
      problems.push(`${name}: expected an integer from ${min} to ${max}, got ${n}`)
    return n
  }
  const host = options.host ?? '127.0.0.1'
  const tokens = options.tokens ?? []
  if (!tokens.every((token) => typeof token === 'string' && TOKEN.test(token))) {
    problems.push('tokens: expected 1 to 1,024 printable ASCII characters without spaces each')
  }
  if (tokens.length === 0 && !isLoopbackHost(host)) {
    problems.push(
      `host: "${host}" can be reached from other machines, so give tokens: [...], or listen on 127.0.0.1`,
    )
  }
  const known = app.queues.map((queue) => queue.name)
  const unknown = (options.queues ?? []).filter((name) => !known.includes(name))
  if (unknown.length > 0)
    problems.push(`queues: the app has no ${unknown.map((name) => `"${name}"`).join(', ')}`)
  const resolved = {
    host,
    port: number('port', options.port, 0, 65_535, 4_000),
    tokens,
    queues: new Set(options.queues ?? known),
    maxBodyBytes: number('maxBodyBytes', options.maxBodyBytes, 1, 67_108_864, 1_048_576),
    requestTimeoutMs: number('requestTimeoutMs', options.requestTimeoutMs, 100, 600_000, 10_000),
    sendTimeoutMs: number('sendTimeoutMs', options.sendTimeoutMs, 100, 600_000, 10_000),
    maxConnections: number('maxConnections', options.maxConnections, 1, 100_000, 1_000),
    logger: options.logger ?? silentLogger,
    clock: options.clock ?? systemClock({ unref: true }),
  }
  if (problems.length > 0) throw new OptionsError('intake', problems)
  return resolved
}
