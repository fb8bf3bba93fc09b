import { problems, show } from '../model/problems.ts'
import type { HaltedKey, HaltedKeys } from '../transport/halted-keys.ts'
import type { Admin, HaltedKeyListOptions, HaltedKeyView, KeySelection } from './admin.ts'
import { type AdminContext, haltedKeysOf } from './context.ts'
import { redrive } from './dead-letter-desk.ts'

const LIST_DEFAULT = 50
const LIST_MAX = 500
/** Keys given by hand in one call. */
const KEYS_MAX = 1_000

/** What fills a full queue may wait behind these very keys: it holds one more for each of them then. */
const withoutAsking = async (): Promise<number> => Number.MAX_SAFE_INTEGER

/** Where a person looks at the keys that stand still, and decides. */
export function keyDesk(context: AdminContext): Admin['keys'] {
  const { transport, find } = context
  return {
    list: async (ref, options = {}) => {
      const { name } = find(ref)
      const { limit, cursor } = checkList(name, options)
      const after = cursor ?? undefined
      const found = await haltedKeysOf(transport).list(name, {
        limit: limit + 1,
        ...(after === undefined ? {} : { after }),
      })
      const items = found.slice(0, limit).map((one) => view(name, one))
      const last = items.at(-1)
      return { items, cursor: found.length > limit && last ? last.key : null }
    },
    show: async (ref, key) => {
      const { name } = find(ref)
      checkKeys(name, 'show', { keys: [key] })
      const found = await haltedKeysOf(transport).get(name, key)
      return found === undefined ? null : view(name, found)
    },
    resume: async (ref, what) => {
      const queue = find(ref)
      const { name } = queue
      checkKeys(name, 'resume', what)
      const { keys, force = false, actor, reason = 'resume of the key' } = what
      const halted = await haltedOf(haltedKeysOf(transport), name, keys)
      const ids = halted.map(({ messageId }) => messageId)
      const by = { force, reason, ...(actor === undefined ? {} : { actor }) }
      const { notFound } = await redrive(context, queue, { ids, ...by }, withoutAsking)
      const gone = new Set(notFound)
      const moved = halted.filter(({ messageId }) => !gone.has(messageId)).map(({ key }) => key)
      return { moved, notFound: without(keys, moved) }
    },
    skip: async (ref, what) => {
      const { name } = find(ref)
      checkKeys(name, 'skip', what)
      const { keys, actor = 'api', reason = 'skip of the key' } = what
      const moved = await haltedKeysOf(transport).skip(name, keys, { actor, reason })
      return { moved, notFound: without(keys, moved) }
    },
  }
}

function view(queue: string, halted: HaltedKey): HaltedKeyView {
  return { queue, ...halted }
}

async function haltedOf(
  halted: HaltedKeys,
  queue: string,
  keys: readonly string[],
): Promise<readonly HaltedKey[]> {
  const found: HaltedKey[] = []
  for (const key of new Set(keys)) {
    const one = await halted.get(queue, key)
    if (one !== undefined) found.push(one)
  }
  return found
}

function without(keys: readonly string[], moved: readonly string[]): readonly string[] {
  const went = new Set(moved)
  return [...new Set(keys)].filter((key) => !went.has(key))
}

function checkList(queue: string, options: HaltedKeyListOptions): Required<HaltedKeyListOptions> {
  const found = problems(`halted keys of queue "${queue}"`)
  found.knownKeys(options, ['limit', 'cursor'])
  const { cursor = null } = options
  if (cursor !== null && typeof cursor !== 'string') {
    found.add(`cursor: expected the cursor of the page before, got ${show(cursor)}`)
  }
  const bounds = { min: 1, max: LIST_MAX, default: LIST_DEFAULT }
  const limit = found.number('limit', options.limit, bounds)
  found.throwIfAny()
  return { limit, cursor }
}

function checkKeys(queue: string, act: string, what: KeySelection): void {
  const found = problems(`${act} of keys of queue "${queue}"`)
  found.knownKeys(what, ['keys', 'force', 'actor', 'reason'])
  const keys: unknown = what.keys
  if (
    !Array.isArray(keys) ||
    keys.length > KEYS_MAX ||
    keys.some((key) => typeof key !== 'string')
  ) {
    found.add(`keys: expected a list of at most ${KEYS_MAX} ordering keys, got ${show(keys)}`)
  }
  for (const name of ['actor', 'reason'] as const) {
    const text: unknown = what[name]
    if (text !== undefined && typeof text !== 'string') {
      found.add(`${name}: expected a text, got ${show(text)}`)
    }
  }
  const force: unknown = what.force
  if (force !== undefined && typeof force !== 'boolean') {
    found.add(`force: expected true or false, got ${show(force)}`)
  }
  found.throwIfAny()
}
