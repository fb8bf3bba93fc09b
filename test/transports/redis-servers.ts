export interface RedisServer {
  readonly name: string
  readonly url: string
}

/** What `scripts/rig` started, or the environment names. */
export function redisServers(): readonly RedisServer[] {
  const { env } = process
  const known = [
    ['redis 7', env.MILLRACE_TEST_REDIS_7_URL],
    ['redis 6.2', env.MILLRACE_TEST_REDIS_62_URL],
    ['valkey', env.MILLRACE_TEST_VALKEY_URL],
  ] as const
  return known.flatMap(([name, url]) => (url === undefined ? [] : [{ name, url }]))
}

/** The addresses of the nodes of a cluster, with commas between them. */
export function redisCluster(): readonly string[] | undefined {
  return process.env.MILLRACE_TEST_REDIS_CLUSTER_URLS?.split(',')
}

/** For `{ skip }` of node:test, so that a missing server is seen. */
export const NO_REDIS = 'no redis: run through `npm test`, or `node scripts/rig/main.ts run …`'

let made = 0

/** A prefix that nobody used before. */
export function freshPrefix(): string {
  made += 1
  return `t-${process.pid}-${made}`
}
