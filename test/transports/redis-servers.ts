import { readFile } from 'node:fs/promises'
import { createClient } from '@redis/client'
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
export const NO_REDIS = 'no redis: run through `npm test`, or `npx node scripts/rig/main.ts run …`'

let made = 0

/** A prefix that nobody used before. */
export function freshPrefix(): string {
  made += 1
  return `t-${process.pid}-${made}`
}

/**
 * A user with the rules that the README prints, for keys of this prefix alone.
 * @param more further rules: for streams that were there
 */
export async function smallestUser(
  { name, url }: RedisServer,
  more: readonly string[] = [],
): Promise<SmallestUser> {
  const readme = await readFile(README, 'utf8')
  const printed = /^ACL SETUSER app on >secret ([^`]*)```/m.exec(readme)?.[1] ?? ''
  const prefix = freshPrefix()
  const rules = printed.trim().split(/\s+/)
  const client = createClient({ url })
  await client.connect()
  const user = ['ACL', 'SETUSER', prefix, 'on', '>secret']
  await client.sendCommand([
    ...user,
    ...rules.map((rule) => rule.replace('millrace', prefix)),
    ...more,
  ])
  const dispose = async (): Promise<void> => {
    await client.sendCommand(['ACL', 'DELUSER', prefix])
    await client.close()
  }
  return { name, prefix, address: { url: url.replace('//', `//${prefix}:secret@`) }, dispose }
}

const README = new URL('../../src/transports/redis/README.md', import.meta.url)

export interface SmallestUser {
  readonly name: string
  readonly prefix: string
  readonly address: { readonly url: string }
  readonly dispose: () => Promise<void>
}
