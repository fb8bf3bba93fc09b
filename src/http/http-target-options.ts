import { validateHeaderName, validateHeaderValue } from 'node:http'
import type { LookupFunction } from 'node:net'
import { type Clock, systemClock } from '../model/clock.ts'
import { messageOfError } from '../model/describe-error.ts'
import type { MaybePromise } from '../model/maybe-promise.ts'
import { type Problems, problems, show } from '../model/problems.ts'
import type { Message } from '../runtime/message.ts'
import { type AddressGuard, addressGuard, guardedLookup } from './guarded-lookup.ts'
import { checkFunctions } from './intake-options.ts'
import { secretProblem } from './sign-webhook.ts'
import { targetUrl } from './target-request.ts'

export interface HttpTargetOptions<Payload> {
  /** Default POST. */
  readonly method?: 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** Added to every request; they win over ours. */
  readonly headers?:
    | Readonly<Record<string, string>>
    | ((message: Message<Payload>) => Readonly<Record<string, string>>)
  /** What is sent: text and bytes as they are, anything else as JSON. Default: the payload. */
  readonly body?: (message: Message<Payload>) => unknown
  /** For the whole exchange, in ms, 1 to 43,200,000. Keep it below the queue's handlerTimeoutMs. Default 15,000. */
  readonly timeoutMs?: number
  /** Signs by the Standard Webhooks convention: `whsec_` and base64; several while a secret is being changed. */
  readonly secret?: string | readonly string[]
  /** True, or the addresses and subnets (`10.0.0.0/8`) that may be reached besides public ones. Default false. */
  readonly allowPrivateAddresses?: boolean | readonly string[]
  /** `follow`: 307 and 308, at most 3 in a row, each address checked, own headers only to the same origin. Default `refuse`. */
  readonly redirects?: 'refuse' | 'follow'
  /** Connections side by side to one host, 1 to 10,000. Default 100. */
  readonly maxSockets?: number
  /** How names are resolved; its answers are checked. Default: the system's resolver. */
  readonly lookup?: LookupFunction
  /** Default: the machine's. */
  readonly clock?: Clock
}

export type TargetUrl<Payload> =
  | string
  | URL
  | ((message: Message<Payload>) => MaybePromise<string | URL>)

export interface ResolvedTarget<Payload> {
  readonly method: string
  readonly urlOf: (message: Message<Payload>) => MaybePromise<string | URL>
  readonly headersOf: (message: Message<Payload>) => Readonly<Record<string, string>>
  readonly bodyOf: (message: Message<Payload>) => unknown
  readonly timeoutMs: number
  readonly secrets: readonly string[]
  readonly isAllowed: AddressGuard
  readonly lookup: LookupFunction
  readonly redirects: 'refuse' | 'follow'
  readonly maxSockets: number
  readonly clock: Clock
}

const METHODS: readonly string[] = ['POST', 'PUT', 'PATCH', 'DELETE']
const REDIRECTS: readonly string[] = ['refuse', 'follow']
const KEYS: readonly (keyof HttpTargetOptions<unknown>)[] = [
  'method',
  'headers',
  'body',
  'timeoutMs',
  'secret',
  'allowPrivateAddresses',
  'redirects',
  'maxSockets',
  'lookup',
  'clock',
]

/** @throws MILLRACE_INVALID_OPTIONS with every problem at once. */
export function resolveTarget<Payload>(
  url: TargetUrl<Payload>,
  options: HttpTargetOptions<Payload>,
): ResolvedTarget<Payload> {
  const found = problems('httpTarget')
  if (typeof url !== 'function') checkUrl(url, found)
  found.knownKeys(options, KEYS)
  const { method = 'POST', headers = {}, redirects = 'refuse', body, lookup } = options
  oneOf('method', method, METHODS, found)
  oneOf('redirects', redirects, REDIRECTS, found)
  if (typeof headers !== 'function') checkHeaders(headers, found)
  found.optionalFunction('body', body)
  found.optionalFunction('lookup', lookup)
  checkFunctions('clock', options.clock, ['now', 'after'], found)
  const number = (name: 'timeoutMs' | 'maxSockets', max: number, by: number): number =>
    found.number(name, options[name], { min: 1, max, default: by })
  const timeoutMs = number('timeoutMs', 43_200_000, 15_000)
  const maxSockets = number('maxSockets', 10_000, 100)
  const secrets = secretsOf(options, found)
  const isAllowed = addressGuard(options.allowPrivateAddresses ?? false, found)
  found.throwIfAny()
  return {
    method,
    urlOf: typeof url === 'function' ? url : () => url,
    headersOf: typeof headers === 'function' ? headers : () => headers,
    bodyOf: body ?? ((message) => message.payload),
    timeoutMs,
    secrets,
    isAllowed,
    lookup: guardedLookup(isAllowed, lookup),
    redirects,
    maxSockets,
    clock: options.clock ?? systemClock({ unref: true }),
  }
}

function checkUrl(url: unknown, found: Problems): void {
  if (typeof url !== 'string' && !(url instanceof URL)) {
    found.add(`url: expected an address or a function of the message, got ${show(url)}`)
    return
  }
  try {
    targetUrl(url)
  } catch (error) {
    found.add(`url: ${messageOfError(error)}`)
  }
}

function oneOf(name: string, value: unknown, known: readonly string[], found: Problems): void {
  if (known.some((one) => one === value)) return
  found.add(`${name}: expected ${known.join(', ')}, got ${show(value)}`)
}

/** Values may be secrets, so that only names are shown. */
function checkHeaders(headers: unknown, found: Problems): void {
  if (typeof headers !== 'object' || headers === null || Array.isArray(headers)) {
    found.add(`headers: expected an object or a function of the message, got ${show(headers)}`)
    return
  }
  for (const [name, value] of Object.entries(headers)) {
    if (!passes(() => validateHeaderName(name)))
      found.add(`headers has ${show(name)}, which HTTP does not allow as a name`)
    else if (typeof value !== 'string')
      found.add(`headers has ${show(name)}, whose value must be a text, got ${show(value)}`)
    else if (!passes(() => validateHeaderValue(name, value)))
      found.add(`headers has ${show(name)}, whose value HTTP does not allow`)
  }
}

function passes(check: () => void): boolean {
  try {
    check()
    return true
  } catch {
    return false
  }
}

/**
 * A secret that was given and is none (a missing environment variable) would send everything unsigned. No message has
 * the form `secret: …`, of which redaction would take the rest for one.
 */
function secretsOf(options: { readonly secret?: unknown }, found: Problems): readonly string[] {
  if (!('secret' in options)) return []
  const given = options.secret
  if (given === undefined) {
    found.add('secret is undefined; is the environment variable set? Leave it out to send unsigned')
    return []
  }
  const list: readonly unknown[] = Array.isArray(given) ? given : [given]
  if (list.length === 0)
    found.add('secret must not be an empty list; leave it out to send unsigned')
  for (const secret of list) {
    const problem = secretProblem(secret)
    if (problem !== undefined) found.add(problem)
  }
  return list.filter((secret) => typeof secret === 'string')
}
