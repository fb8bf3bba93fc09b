/** Where a queue is in Redis; each name can be said by the user. */
export interface RedisNames {
  /** The key of the stream, which may be there already. Default: `{prefix:name}:ready`. */
  readonly stream?: string
  /** The consumer group that all workers share. Default: the option `group`. */
  readonly group?: string
}

/** How the queues of one app are named. */
export interface Naming {
  readonly prefix: string
  readonly group: string
  readonly queues: Readonly<Record<string, RedisNames>>
}

export function namesOf({ prefix, group, queues }: Naming, queue: string): Required<RedisNames> {
  const own = Object.hasOwn(queues, queue) ? queues[queue] : undefined
  return {
    stream: own?.stream ?? `{${prefix}:${tagged(queue)}}:ready`,
    group: own?.group ?? group,
  }
}

/** A closing brace would end the hash tag early, and two queues could then look like one. */
function tagged(queue: string): string {
  return queue.replace(/[%{}]/g, (one) => `%${one.charCodeAt(0).toString(16)}`)
}

/** A stream as we name it, whichever prefix it has. */
const OURS = /^(\{[^{}]+\}:)ready$/

/**
 * What the keys begin with that we keep beside a stream. They must live where it does on a cluster, so they carry its hash tag,
 * and where it has none its whole name as theirs, which is what Redis places it by. They belong to the stream and not to a
 * prefix: whoever works on the same stream has to know the same.
 */
export function keysBeside(stream: string): string {
  const ours = OURS.exec(stream)?.[1]
  if (ours !== undefined) return ours
  return hasTag(stream) ? `${stream}:millrace:` : `{${stream}}.millrace:`
}

/** Why there are no keys of ours that would live where this stream does; undefined where there are. */
export function streamProblem(stream: string): string | undefined {
  if (!/[{}]/.test(stream) || hasTag(stream)) return undefined
  return 'has braces and no hash tag between them, so no other key can be kept where it is on a cluster; rename it (RENAME), with a hash tag or without braces'
}

/** As Redis finds it: from the first opening brace to the first closing one behind it, unless nothing is between them. */
function hasTag(key: string): boolean {
  const from = key.indexOf('{')
  return from >= 0 && key.indexOf('}', from) > from + 1
}
