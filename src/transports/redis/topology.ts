import { MillraceError, OptionsError } from '../../model/errors.ts'
import type { Reply } from '../../redis/wire.ts'
import type { QueueSpec } from '../../transport/transport.ts'
import { type QueueKeys, queueKeys } from './keys.ts'
import { scripts } from './script.ts'
import { run, type Store } from './store.ts'

/**
 * Looks at the streams and groups, makes what is missing where that was asked for, and changes nothing that is there.
 * @throws MILLRACE_INVALID_OPTIONS with everything that is wrong with all queues
 */
export async function ensure(
  store: Store,
  specs: readonly QueueSpec[],
  signal: AbortSignal,
): Promise<void> {
  const found = await refusalsOf(store, specs, signal, 'make')
  if (found.length > 0) throw new OptionsError('redis', found)
}

/** What `ensure` would refuse; nothing is made or written. */
export function differences(
  store: Store,
  specs: readonly QueueSpec[],
  signal: AbortSignal,
): Promise<readonly string[]> {
  return refusalsOf(store, specs, signal, 'look')
}

type How = 'make' | 'look'

async function refusalsOf(
  store: Store,
  specs: readonly QueueSpec[],
  signal: AbortSignal,
  how: How,
): Promise<readonly string[]> {
  const found: string[] = []
  const streams = new Map<string, string>()
  for (const spec of new Map(specs.map((one) => [one.name, one])).values()) {
    const keys = queueKeys(store.naming, spec.name)
    const other = streams.get(keys.stream)
    streams.set(keys.stream, spec.name)
    if (other === undefined) found.push(...(await ensureOne(store, spec, keys, signal, how)))
    else found.push(`queues "${other}" and "${spec.name}" have one stream, ${keys.stream}`)
  }
  return found
}

async function ensureOne(
  store: Store,
  { name, owner, maxDepth, onDead = 'continue', ageingMs }: QueueSpec,
  keys: QueueKeys,
  signal: AbortSignal,
  how: How,
): Promise<readonly string[]> {
  const capacity = maxDepth === undefined ? '' : String(maxDepth)
  const ageing = ageingMs === undefined ? '' : String(ageingMs)
  const args = [keys.group, owner, capacity, store.topology, how, onDead, ageing]
  const reply = await run(store, scripts.ENSURE, keys, args, { signal })
  const found = Array.isArray(reply) ? reply.map(wordsOf) : []
  if (found.some(([kind]) => kind === 'newer')) throw newerError(name)
  if (found.length === 0 && how === 'make') store.queues.set(name, keys)
  return found.map((one) => `queue "${name}": ${told(keys, one)}`)
}

type Words = readonly [kind: string, a: string, b: string, c: string]

function wordsOf(reply: Reply): Words {
  const [kind = '', a = '', b = '', c = ''] = Array.isArray(reply) ? reply.map(String) : []
  return [kind, a, b, c]
}

/** What is wrong, and what to do about it. */
function told({ stream, group, claims }: QueueKeys, [kind, a, b, c]: Words): string {
  switch (kind) {
    case 'type':
      return `key ${a} is a ${b}, and has to be a ${c}; give another stream in the option queues, or another prefix`
    case 'other group':
      return `stream ${stream} is read by the consumer group "${a}", and with "${group}" as a second one each would remove what the other has not seen; pass group: '${a}' (for this queue alone in the option queues), take another stream, or remove the old group (XGROUP DESTROY)`
    case 'no stream':
    case 'no group':
      return `${kind === 'no group' ? `stream ${stream} has no consumer group "${group}"` : `there is no stream ${stream}`}, and topology is "check"; ${made(stream, group)}, or pass topology: 'create'`
    case 'held':
      return `consumer "${a}" of group "${group}" is another program's and holds ${b} entries of stream ${stream}, which nothing takes back from it; let it ack them, or stop it and hand them over as of a worker that vanished: ZADD ${claims} 0 ${a}`
    default:
      return `stream ${stream} has entries that group "${group}" has read and acked and that nobody deleted; they would count as waiting and never come. Delete them: XTRIM ${stream} MINID ${a}`
  }
}

function made(stream: string, group: string): string {
  return `make it: XGROUP CREATE ${stream} ${group} 0 MKSTREAM`
}

/** Somebody deleted the group, and it is not ours to make. */
export function noGroupError(queue: string, { stream, group }: QueueKeys): MillraceError {
  return new MillraceError(
    'MILLRACE_UNKNOWN_QUEUE',
    `queue "${queue}": stream ${stream} has no consumer group "${group}", and topology is not "create"; ${made(stream, group)}`,
    { fields: { queue } },
  )
}

function newerError(name: string): MillraceError {
  return new MillraceError(
    'MILLRACE_SCHEMA_TOO_NEW',
    `queue "${name}" was laid out in Redis by a newer version of millrace; update this one`,
    { fields: { queue: name } },
  )
}
