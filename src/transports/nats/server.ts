import type { NatsConnection } from '@nats-io/transport-node'

/** What the server that we reached can do, read from its greeting. */
export interface ServerAbilities {
  readonly version: string
  readonly maxPayload: number
  /** Messages that the server holds back until their moment, from 2.12 on. */
  readonly schedules: boolean
  /** Consumers that can be paused, from 2.11 on. */
  readonly pauses: boolean
}

/** The oldest server that was tried; older ones lack what this transport needs or nobody has looked. */
const OLDEST = [2, 9] as const

export function abilitiesOf(nc: NatsConnection): ServerAbilities {
  const version = nc.info?.version ?? '0.0.0'
  return {
    version,
    maxPayload: nc.info?.max_payload ?? 1_048_576,
    schedules: isAtLeast(version, [2, 12]),
    pauses: isAtLeast(version, [2, 11]),
  }
}

/** A sentence about a server that cannot be used; undefined when it can. */
export function serverProblem(nc: NatsConnection): string | undefined {
  const version = nc.info?.version ?? 'an unknown version'
  if (!isAtLeast(version, OLDEST)) {
    return `servers: expected NATS ${OLDEST.join('.')} or newer, got ${version}; upgrade the server`
  }
  if (nc.info?.headers === false) return 'servers: the server has headers switched off; allow them'
  return undefined
}

function isAtLeast(version: string, [major, minor]: readonly [number, number]): boolean {
  const [a = 0, b = 0] = version.split('.').map((part) => Number.parseInt(part, 10))
  return a > major || (a === major && b >= minor)
}
