import { type Clock, systemClock } from '../model/clock.ts'
import type { Logger } from '../model/logger.ts'
import { silentLogger } from '../model/logger.ts'
import { nearest } from '../model/nearest.ts'
import { read } from '../model/probe.ts'
import { type Problems, problems, show } from '../model/problems.ts'
import type { App } from '../runtime/app.ts'
import type { IntakeOptions } from '../runtime/intake-options.ts'
import { isLoopbackHost } from './address.ts'

/** The part of an app that an intake needs. */
export type IntakeApp = Pick<App, 'queues' | 'send' | 'sendBatch' | 'health'> & {
  /** For `GET /scale/:queue`. */
  readonly admin?: Pick<App['admin'], 'scale'>
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
const KEYS: readonly (keyof IntakeOptions)[] = [
  'host',
  'port',
  'tokens',
  'queues',
  'maxBodyBytes',
  'requestTimeoutMs',
  'sendTimeoutMs',
  'maxConnections',
  'logger',
  'clock',
]

/** @throws MILLRACE_INVALID_OPTIONS with every problem at once. */
export function resolveIntakeOptions(
  app: Pick<IntakeApp, 'queues'>,
  options: IntakeOptions,
): ResolvedIntakeOptions {
  const found = problems('intake')
  found.knownKeys(options, KEYS)
  checkAddress(options, found)
  const known = app.queues.map((queue) => queue.name)
  checkQueues(options.queues, known, found)
  checkFunctions('logger', options.logger, ['debug', 'info', 'warn', 'error'], found)
  checkFunctions('clock', options.clock, ['now', 'after'], found)
  const number = (
    name: 'port' | 'maxBodyBytes' | 'requestTimeoutMs' | 'sendTimeoutMs' | 'maxConnections',
    min: number,
    max: number,
    by: number,
  ): number => found.number(name, options[name], { min, max, default: by })
  const resolved = {
    port: number('port', 0, 65_535, 4_000),
    maxBodyBytes: number('maxBodyBytes', 1, 67_108_864, 1_048_576),
    requestTimeoutMs: number('requestTimeoutMs', 100, 600_000, 10_000),
    sendTimeoutMs: number('sendTimeoutMs', 100, 600_000, 10_000),
    maxConnections: number('maxConnections', 1, 100_000, 1_000),
  }
  found.throwIfAny()
  return {
    ...resolved,
    host: options.host ?? LOOPBACK,
    tokens: options.tokens ?? [],
    queues: new Set(options.queues ?? known),
    logger: options.logger ?? silentLogger,
    clock: options.clock ?? systemClock({ unref: true }),
  }
}

const LOOPBACK = '127.0.0.1'

/**
 * Who may reach it. `tokens` that were given and are none (a missing environment variable) would open the door to
 * everybody. No message has the form `tokens: …`, of which redaction would take the rest for a secret.
 */
function checkAddress(options: IntakeOptions, found: Problems): void {
  const host: unknown = options.host ?? LOOPBACK
  const tokens: unknown = 'tokens' in options ? options.tokens : NO_TOKENS
  if (tokens === undefined) {
    found.add('tokens is undefined; is the environment variable set? Leave the option out for none')
  } else if (!Array.isArray(tokens) || (tokens.length === 0 && tokens !== NO_TOKENS)) {
    const got = Array.isArray(tokens) ? 'an empty list' : kindOf(tokens)
    found.add(`tokens must be a list of at least one text, got ${got}`)
  } else {
    for (const [i, token] of tokens.entries()) {
      if (typeof token === 'string' && TOKEN.test(token)) continue
      found.add(
        `tokens[${i}] must have 1 to 1,024 printable ASCII characters without spaces, got ${kindOf(token)}`,
      )
    }
  }
  if (typeof host !== 'string' || host === '') {
    found.add(`host: expected a name or an address, got ${show(host)}`)
  } else if (tokens === NO_TOKENS && !isLoopbackHost(host)) {
    found.add(
      `host: "${host}" can be reached from other machines; add the option tokens, or listen on ${LOOPBACK}`,
    )
  }
}

const NO_TOKENS: readonly string[] = []

/** What a token or secret is, without showing it. */
export function kindOf(value: unknown): string {
  return typeof value === 'string' ? `a text of ${value.length} characters` : show(value)
}

function checkQueues(queues: unknown, known: readonly string[], found: Problems): void {
  if (queues === undefined) return
  if (!Array.isArray(queues) || queues.length === 0) {
    found.add(`queues: expected a list of names, got ${show(queues)}`)
    return
  }
  for (const name of queues) {
    if (typeof name === 'string' && known.includes(name)) continue
    const near = typeof name === 'string' ? nearest(name, known) : undefined
    const there = known.slice(0, NAMES_SHOWN).join(', ')
    const hint = near === undefined ? `it has ${there}` : `did you mean "${near}"?`
    found.add(`queues: the app has no queue ${show(name)}; ${hint}`)
  }
}

const NAMES_SHOWN = 10

/** A logger or clock that lacks something would fail at the first request, not at the start. */
export function checkFunctions(
  name: string,
  value: unknown,
  needed: readonly string[],
  found: Problems,
): void {
  if (value === undefined || needed.every((one) => typeof read(value, one) === 'function')) return
  found.add(
    `${name}: expected an object with the functions ${needed.join(', ')}, got ${show(value)}`,
  )
}
