import type { LookupFunction } from 'node:net'
import { type Clock, systemClock } from '../model/clock.ts'
import { OptionsError } from '../model/errors.ts'
import type { MaybePromise } from '../model/maybe-promise.ts'
import type { Message } from '../runtime/message.ts'
import { type AddressGuard, addressGuard, guardedLookup } from './guarded-lookup.ts'
import { secretBytes } from './sign-webhook.ts'

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

/** @throws MILLRACE_INVALID_OPTIONS */
export function resolveTarget<Payload>(
  url: TargetUrl<Payload>,
  options: HttpTargetOptions<Payload>,
): ResolvedTarget<Payload> {
  const secrets = typeof options.secret === 'string' ? [options.secret] : (options.secret ?? [])
  for (const secret of secrets) secretBytes(secret)
  const isAllowed = addressGuard(options.allowPrivateAddresses ?? false)
  const { headers = {} } = options
  return {
    method: options.method ?? 'POST',
    urlOf: typeof url === 'function' ? url : () => url,
    headersOf: typeof headers === 'function' ? headers : () => headers,
    bodyOf: options.body ?? ((message) => message.payload),
    timeoutMs: within('timeoutMs', options.timeoutMs ?? 15_000, 43_200_000),
    secrets,
    isAllowed,
    lookup: guardedLookup(isAllowed, options.lookup),
    redirects: options.redirects ?? 'refuse',
    maxSockets: within('maxSockets', options.maxSockets ?? 100, 10_000),
    clock: options.clock ?? systemClock({ unref: true }),
  }
}

function within(name: string, n: number, max: number): number {
  if (Number.isInteger(n) && n >= 1 && n <= max) return n
  throw new OptionsError('httpTarget', [`${name}: expected an integer from 1 to ${max}, got ${n}`])
}
