import { hasCode } from '../../model/errors.ts'
import type { Fault } from '../../model/fault.ts'
import { isObject, read, readInteger, readList, readString } from '../../model/probe.ts'
import { ownFault } from '../../transport/own-errors.ts'
import { isUnknownTopic, type KafkaModule } from './client.ts'

/** Kafka's error codes that are looked at here (https://kafka.apache.org/protocol#protocol_error_codes). */
export const codes = {
  offsetOutOfRange: 1,
  unknownTopic: 3,
  leaderNotAvailable: 5,
  notLeader: 6,
  requestTimedOut: 7,
  replicaNotAvailable: 9,
  messageTooLarge: 10,
  offsetMetadataTooLarge: 12,
  networkException: 13,
  coordinatorLoading: 14,
  coordinatorNotAvailable: 15,
  notCoordinator: 16,
  recordListTooLarge: 18,
  notEnoughReplicas: 19,
  notEnoughReplicasAfterAppend: 20,
  illegalGeneration: 22,
  unknownMember: 25,
  rebalanceInProgress: 27,
  topicDenied: 29,
  groupDenied: 30,
  clusterDenied: 31,
  topicExists: 36,
  invalidPartitions: 37,
  invalidReplicationFactor: 38,
  invalidConfig: 40,
  policyViolation: 44,
  storageError: 56,
  saslFailed: 58,
  fencedLeaderEpoch: 74,
  unknownLeaderEpoch: 75,
  offsetNotAvailable: 78,
  memberIdRequired: 79,
  fencedInstance: 82,
  unknownTopicId: 100,
  inconsistentTopicId: 103,
} as const

/** Another broker leads it now, or will soon. */
export const MOVED: readonly number[] = [
  codes.unknownTopic,
  codes.leaderNotAvailable,
  codes.notLeader,
  codes.requestTimedOut,
  codes.replicaNotAvailable,
  codes.networkException,
  codes.storageError,
  codes.fencedLeaderEpoch,
  codes.unknownLeaderEpoch,
  codes.offsetNotAvailable,
  codes.unknownTopicId,
  codes.inconsistentTopicId,
]

/** All of the broker's codes in an error of the client, which nests them. */
export function codesIn(error: unknown, depth = 6): ReadonlySet<number> {
  const found = new Set<number>()
  if (depth === 0 || !isObject(error)) return found
  const code = readInteger(error, 'apiCode')
  if (code !== undefined) found.add(code)
  const inner = [read(error, 'cause'), ...(readList(error, 'errors', 100) ?? [])]
  for (const one of inner) for (const each of codesIn(one, depth - 1)) found.add(each)
  return found
}

/** A code of the broker's, for people. */
export function nameOf({ protocolErrorsCodesById }: KafkaModule, code: number): string {
  return `${protocolErrorsCodesById[code] ?? 'an error that this client does not know'} (${code})`
}

/** What the broker said, which the client puts deep into an error that names the call alone. */
export function saidBy(error: unknown, depth = 6): string {
  const inner = depth === 0 ? [] : [read(error, 'cause'), ...(readList(error, 'errors', 100) ?? [])]
  for (const one of inner) {
    if (isObject(one)) return saidBy(one, depth - 1)
  }
  const id = readString(error, 'apiId')
  const message = error instanceof Error ? error.message : String(error)
  return id === undefined ? message : `${id}: ${message}`
}

const DENIED = [codes.topicDenied, codes.groupDenied, codes.clusterDenied, codes.saslFailed]
const TOO_LARGE = [codes.messageTooLarge, codes.recordListTooLarge]

/** What an error of the client means for what was asked. */
export function kafkaFault(error: unknown): Fault {
  const own = ownFault(error)
  if (own !== undefined) return own
  const found = codesIn(error)
  const has = (some: readonly number[]): boolean => some.some((code) => found.has(code))
  const certain = { retryable: false, outcome: 'notApplied', cause: error } as const
  if (isUnknownTopic(error) || has([codes.unknownTopic])) return { ...certain, code: 'notFound' }
  if (has(TOO_LARGE)) return { ...certain, code: 'tooLarge' }
  if (has(DENIED) || isNamed(error, 'PLT_KFK_AUTHENTICATION')) return { ...certain, code: 'denied' }
  if (has([codes.notEnoughReplicas])) return { ...certain, code: 'unavailable', retryable: true }
  if (found.size > 0 || isAway(error)) {
    return { code: 'unavailable', retryable: true, outcome: 'unknown', cause: error }
  }
  return { code: 'unknown', retryable: false, outcome: 'unknown', cause: error }
}

function isAway(error: unknown): boolean {
  if (hasCode(error, 'MILLRACE_UNAVAILABLE') || read(error, 'name') === 'AbortError') return true
  return ['PLT_KFK_NETWORK', 'PLT_KFK_TIMEOUT', 'PLT_KFK_MULTIPLE'].some((code) =>
    isNamed(error, code),
  )
}

function isNamed(error: unknown, code: string, depth = 6): boolean {
  if (depth === 0 || !isObject(error)) return false
  if (read(error, 'code') === code) return true
  const inner = [read(error, 'cause'), ...(readList(error, 'errors', 100) ?? [])]
  return inner.some((one) => isNamed(one, code, depth - 1))
}
