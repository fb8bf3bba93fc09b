import { OptionsError } from '../model/errors.ts'
import type { Logger } from '../model/logger.ts'
import { isObject, read } from '../model/probe.ts'
import { type CallParts, call } from './call.ts'
import { wordOf } from './fault.ts'
import type { Reply } from './wire.ts'

/** What a server says of itself; undefined where it does not. */
export interface ServerFacts {
  readonly version: string | undefined
  readonly isReplica: boolean
  readonly isClusterNode: boolean
  readonly evicts: string | undefined
  readonly appendOnly: boolean | undefined
  readonly appendFsync: string | undefined
  /** Bytes; 0 is no limit. */
  readonly memoryMax: number | undefined
  /** Replicas that are connected to it. */
  readonly replicas: number | undefined
}

const VERSION_MIN = [6, 2] as const

export async function readFacts(parts: CallParts): Promise<ServerFacts> {
  const info = infoOf(await allowed(parts, ['INFO']))
  const config = async (name: string): Promise<string | undefined> =>
    settingOf(await allowed(parts, ['CONFIG', 'GET', name]), name)
  return {
    version: info.get('redis_version'),
    isReplica: info.get('role') === 'slave',
    isClusterNode: info.get('cluster_enabled') === '1',
    evicts: info.get('maxmemory_policy') ?? (await config('maxmemory-policy')),
    appendOnly: flag(info.get('aof_enabled')),
    appendFsync: await config('appendfsync'),
    memoryMax: numberOf(info.get('maxmemory')),
    replicas: numberOf(info.get('connected_slaves')),
  }
}

/**
 * Refuses a server that would lose messages or cannot run the scripts, all reasons at once; says in the log what could not
 * be seen and what a crash of the server may cost. Answers whether every write is on disk before it is confirmed.
 */
export function judgeServer(facts: ServerFacts, many: boolean, logger: Logger): boolean {
  const refused: string[] = []
  const { version, evicts, appendOnly, appendFsync } = facts
  if (version !== undefined && !isNewEnough(version)) {
    refused.push(`the server is Redis ${version}; use 6.2 or newer, or Valkey`)
  }
  if (facts.isReplica)
    refused.push('the server is a replica, which takes no writes; name the primary')
  if (facts.isClusterNode && !many) {
    refused.push('the server is a node of a cluster; pass { cluster: [its addresses] } instead')
  }
  if (evicts !== undefined && evicts !== 'noeviction') {
    refused.push(
      `maxmemory-policy is ${evicts}, so a full server drops messages and keys in silence; set it to noeviction`,
    )
  }
  if (refused.length > 0) throw new OptionsError('redis', refused)
  if (evicts === undefined) {
    logger.warn(
      'cannot see whether Redis evicts (INFO and CONFIG are forbidden); maxmemory-policy must be noeviction',
    )
  }
  const durable = appendOnly === true && appendFsync === 'always'
  if (!durable) logger.warn(`what Redis has confirmed may be lost: ${lossOf(facts)}`)
  return durable
}

/** What durability rests on, for people; a sentence each. */
export function toldFacts(facts: ServerFacts): readonly string[] {
  const { evicts, appendOnly, appendFsync, memoryMax, replicas } = facts
  const isDurable = appendOnly === true && appendFsync === 'always'
  const limit = memoryMax === 0 ? 'no maxmemory' : `maxmemory ${memoryMax ?? 'unknown'}`
  const lossless = 'appendonly is on and appendfsync is always, so a power cut loses nothing'
  return [
    `persistence: ${isDurable ? lossless : lossOf(facts)}`,
    `eviction: maxmemory-policy is ${evicts ?? 'unknown'}, ${limit}`,
    `failover: ${replicas ?? 'an unknown number of'} replicas; replication is asynchronous, so a failover loses what they had not received, and the loss of the machine all that no replica has`,
  ]
}

function numberOf(text: string | undefined): number | undefined {
  return text === undefined ? undefined : Number(text)
}

function lossOf({ appendOnly, appendFsync }: ServerFacts): string {
  if (appendOnly === undefined) return 'its persistence cannot be seen (INFO is forbidden)'
  if (!appendOnly) return 'appendonly is off, so a crash loses all since the last snapshot'
  if (appendFsync === undefined) return 'appendfsync cannot be seen (CONFIG is forbidden)'
  return `appendfsync is ${appendFsync}, so a power cut loses the last moments (always loses nothing)`
}

function isNewEnough(version: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  return major > VERSION_MIN[0] || (major === VERSION_MIN[0] && minor >= VERSION_MIN[1])
}

/** Undefined for a command that this user may not run, or that a managed server hides. */
async function allowed(parts: CallParts, args: readonly string[]): Promise<Reply | undefined> {
  try {
    return await call(parts, undefined, args)
  } catch (error) {
    if (['NOPERM', 'ERR'].includes(wordOf(error) ?? '')) return undefined
    throw error
  }
}

function infoOf(reply: Reply | undefined): ReadonlyMap<string, string> {
  const lines = String(reply ?? '').split('\r\n')
  return new Map(
    lines.map((line) => [line.split(':', 1)[0] ?? '', line.slice(line.indexOf(':') + 1)]),
  )
}

/** A list with RESP 2; a client of the user's own may speak RESP 3, which has maps. */
function settingOf(reply: unknown, name: string): string | undefined {
  if (Array.isArray(reply)) return reply.length >= 2 ? String(reply[1]) : undefined
  if (reply instanceof Map) return textOf(reply.get(name))
  return isObject(reply) ? textOf(read(reply, name)) : undefined
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}

function flag(text: string | undefined): boolean | undefined {
  return text === undefined ? undefined : text === '1'
}
