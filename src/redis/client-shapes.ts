import { read } from '../model/probe.ts'
import type { Args, Reply } from './wire.ts'

/** What a client of `redis` or `@redis/client` looks like from outside, whichever of its three kinds. */
export interface RedisClientLike {
  readonly isReady: boolean
  readonly isOpen: boolean
  duplicate(): unknown
}

export interface CommandOptions {
  readonly typeMapping?: Readonly<Record<number, unknown>>
}

interface Common extends RedisClientLike {
  connect(): Promise<unknown>
  destroy(): void
  on(event: string, hear: (value: unknown) => void): unknown
  off(event: string, hear: (value: unknown) => void): unknown
  subscribe(channel: string, hear: (message: string) => void): Promise<void>
}

/** Of one server. */
export interface SingleClient extends Common {
  duplicate(): SingleClient
  ping(): Promise<unknown>
  sendCommand(args: Args, options?: CommandOptions): Promise<Reply>
}

export interface ClusterClient extends Common {
  sendCommand(
    key: string | undefined,
    isReadonly: boolean,
    args: Args,
    options?: CommandOptions,
  ): Promise<Reply>
}

export interface SentinelClient extends Common {
  sendCommand(isReadonly: boolean, args: Args, options?: CommandOptions): Promise<Reply>
}

export type AnyClient =
  | { readonly kind: 'single'; readonly client: SingleClient }
  | { readonly kind: 'cluster'; readonly client: ClusterClient }
  | { readonly kind: 'sentinel'; readonly client: SentinelClient }

/** Told apart by what only one kind has; undefined for anything else. */
export function anyClient(value: unknown): AnyClient | undefined {
  if (!isCommon(value)) return undefined
  if (has(value, 'getMasterNode')) return { kind: 'sentinel', client: value as SentinelClient }
  if (has(value, 'getSlotMaster') || has(value, 'getSlotRandomNode')) {
    return { kind: 'cluster', client: value as ClusterClient }
  }
  return has(value, 'ping') ? { kind: 'single', client: value as SingleClient } : undefined
}

function isCommon(value: unknown): value is Common {
  if (typeof value !== 'object' || value === null) return false
  const methods = ['sendCommand', 'connect', 'destroy', 'duplicate', 'on', 'off', 'subscribe']
  return methods.every((name) => has(value, name))
}

function has(value: unknown, name: string): boolean {
  return typeof read(value, name) === 'function'
}

/** RESP's byte for a text of known length; texts come as bytes then. Numbers of `RESP_TYPES`, which never change. */
const AS_BYTES: CommandOptions = { typeMapping: { 36: Buffer } }
const AS_TEXT: CommandOptions = { typeMapping: {} }

export function typed(bytes: boolean): CommandOptions {
  return bytes ? AS_BYTES : AS_TEXT
}
