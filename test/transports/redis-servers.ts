import { backendUrl } from '../backends.ts'

export interface RedisServer {
  readonly name: string
  readonly url: string
}

let found: readonly RedisServer[] | undefined

/** What `scripts/rig` started, or the environment names; one that is missing is reported once in each file. */
export function redisServers(): readonly RedisServer[] {
  const names = ['redis 7', 'redis 6.2', 'valkey'] as const
  found ??= names.flatMap((name) => {
    const url = backendUrl(name)
    return url === undefined ? [] : [{ name, url }]
  })
  return found
}

/** The addresses of the nodes of a cluster. */
export function redisCluster(): readonly string[] | undefined {
  return backendUrl('redis cluster')?.split(',')
}

/** For `{ skip }` of node:test, so that a missing server is seen. */
export const NO_REDIS = 'no redis: run through `npm test`, or `node scripts/rig/main.ts run …`'

let made = 0

/** A prefix that nobody used before. */
export function freshPrefix(): string {
  made += 1
  return `t-${process.pid}-${made}`
}
