import { matching, type RedriveOptions, redriveIds } from '../deadletters/redrive.ts'
import { MillraceError } from '../model/errors.ts'
import type { HaltedKey } from '../transport/halted-keys.ts'
import type { Admin, DeadLetterListOptions, RedriveResult, RedriveSelection } from './admin.ts'
import { type AdminContext, type AdminQueue, browseOf, shelfOf } from './context.ts'
import {
  checkAudit,
  checkDiscard,
  checkId,
  checkList,
  checkRedrive,
} from './dead-letter-options.ts'
import { deadLetterView } from './views.ts'

const DISCARD_STEP = 500

/** Where a person looks at what died, and decides. */
export function deadLetterDesk(context: AdminContext): Admin['deadLetters'] {
  const { transport, find } = context
  return {
    list: async (ref, options = {}) => {
      const queue = find(ref)
      const page = await shelfOf(transport).list(queue.name, checkList(queue.name, options))
      return {
        items: page.items.map((letter) => deadLetterView(queue, letter)),
        cursor: page.cursor,
      }
    },
    show: async (ref, id) => {
      const queue = find(ref)
      checkId(queue.name, id)
      const letter = await shelfOf(transport).get(queue.name, id)
      return letter === undefined ? null : deadLetterView(queue, letter)
    },
    redrive: async (ref, what) => {
      const queue = find(ref)
      return redrive(context, queue, what, () => roomIn(context, queue))
    },
    discard: async (ref, what) => {
      const queue = find(ref)
      checkDiscard(queue.name, what)
      const audit = { actor: what.actor ?? 'api', reason: what.reason }
      const gone = new Set<string>()
      for (let i = 0; i < what.ids.length; i += DISCARD_STEP) {
        const step = what.ids.slice(i, i + DISCARD_STEP)
        for (const id of await shelfOf(transport).discard(queue.name, step, audit)) gone.add(id)
      }
      return { discarded: gone.size, notFound: what.ids.filter((id) => !gone.has(id)) }
    },
    audit: async (ref, options = {}) => {
      const { name } = find(ref)
      return shelfOf(transport).audit(name, checkAudit(name, options))
    },
  }
}

/** What moves asks `room` how many more the queue takes now. */
export async function redrive(
  context: AdminContext,
  queue: AdminQueue,
  what: RedriveSelection,
  room: RedriveOptions['room'],
): Promise<RedriveResult> {
  const selected = checkRedrive(queue.name, what)
  const chosen =
    selected.ids === undefined
      ? await chooseAll(context, queue, selected.filter ?? {})
      : await chooseIds(context, queue, selected.ids)
  if (what.force !== true) refuseForgotten(context, queue, chosen.letters)
  const ids = chosen.letters.map((letter) => letter.id)
  if (what.dryRun === true) return { matched: ids.length, moved: 0, notFound: chosen.notFound }
  let moved = 0
  const progress = (): RedriveResult => ({ matched: ids.length, moved, notFound: chosen.notFound })
  const done = await redriveIds(ids, {
    ...redriveOptions(context, queue, what),
    room,
    onStep: (step) => {
      moved += step
      what.onProgress?.(progress())
    },
  })
  const went = new Set(done)
  const interrupted = what.signal?.aborted === true
  const vanished =
    interrupted || selected.ids === undefined ? [] : ids.filter((id) => !went.has(id))
  return { matched: ids.length, moved: done.length, notFound: [...chosen.notFound, ...vanished] }
}

function redriveOptions(
  context: AdminContext,
  queue: AdminQueue,
  what: RedriveSelection,
): Omit<RedriveOptions, 'onStep' | 'room'> {
  return {
    shelf: shelfOf(context.transport),
    queue: queue.name,
    clock: context.clock,
    audit: { actor: what.actor ?? 'api', reason: what.reason ?? 'redrive' },
    ratePerSecond: what.ratePerSecond,
    signal: what.signal,
    halting: () => haltingIn(context, queue.name),
    turn: context.turnOf(queue.name),
    onFull: () => what.onFull?.(),
  }
}

async function roomIn({ transport }: AdminContext, queue: AdminQueue): Promise<number> {
  if (queue.capacity === 'unbounded') return Number.MAX_SAFE_INTEGER
  const gauge = await browseOf(transport).gauge(queue.name)
  const held = (gauge.depth ?? 0) + (gauge.scheduled ?? 0) + (gauge.inFlight ?? 0)
  return queue.capacity.maxDepth - held
}

const HALTED_PAGE = 500

/** The ids of the dead letters that halt a key of this queue, read page by page. */
async function haltingIn({ transport }: AdminContext, queue: string): Promise<ReadonlySet<string>> {
  const ids = new Set<string>()
  let page: readonly HaltedKey[] = []
  do {
    const after = page.at(-1)?.key
    const place = { limit: HALTED_PAGE, ...(after === undefined ? {} : { after }) }
    page = (await transport.haltedKeys?.list(queue, place)) ?? []
    for (const { messageId } of page) ids.add(messageId)
  } while (page.length === HALTED_PAGE)
  return ids
}

interface Chosen {
  readonly letters: readonly { readonly id: string; readonly triedAt: number }[]
  readonly notFound: readonly string[]
}

async function chooseIds(
  context: AdminContext,
  queue: AdminQueue,
  ids: readonly string[],
): Promise<Chosen> {
  const letters: { id: string; triedAt: number }[] = []
  const notFound: string[] = []
  for (const id of new Set(ids)) {
    const letter = await shelfOf(context.transport).get(queue.name, id)
    if (letter === undefined) notFound.push(id)
    else letters.push({ id, triedAt: letter.history.records[0]?.at ?? letter.deadAt })
  }
  return { letters, notFound }
}

async function chooseAll(
  context: AdminContext,
  queue: AdminQueue,
  filter: {
    readonly errorClass?: DeadLetterListOptions['errorClass']
    readonly deadBefore?: number
  },
): Promise<Chosen> {
  const { errorClass } = filter
  const letters: { id: string; triedAt: number }[] = []
  const selection = {
    ...(errorClass === undefined ? {} : { errorClass }),
    ...(filter.deadBefore === undefined ? {} : { deadBefore: filter.deadBefore }),
  }
  for await (const letter of matching(shelfOf(context.transport), queue.name, selection)) {
    letters.push(letter)
  }
  // Oldest first: what waited longest goes first, and the queue keeps the order of sending as far as it can.
  return { letters: letters.reverse(), notFound: [] }
}

/** A key that the inbox may have forgotten protects no longer: the effect could happen a second time. */
function refuseForgotten(
  context: AdminContext,
  queue: AdminQueue,
  letters: Chosen['letters'],
): void {
  const { inboxTtlMs, clock } = context
  if (inboxTtlMs === undefined) return
  const old = letters.filter((letter) => clock.now() - letter.triedAt > inboxTtlMs)
  if (old.length === 0) return
  throw new MillraceError(
    'MILLRACE_REDRIVE_TOO_OLD',
    `queue "${queue.name}": ${old.length} of ${letters.length} dead letters (first ${old[0]?.id}) are older than the inbox remembers ` +
      `(${Math.round(inboxTtlMs / 3_600_000)} h), so an effect could happen twice; nothing was moved, use force to redrive all the same`,
    { fields: { queue: queue.name, ids: old.slice(0, 20).map((letter) => letter.id) } },
  )
}
