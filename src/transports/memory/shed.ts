import type { ShedOptions } from '../../transport/transport.ts'
import type { Entry } from './entry.ts'
import type { Heap } from './heap.ts'
import type { Lines, MemoryQueue } from './queue.ts'

/** Answers what would go; takes nothing out. */
export function shedFrom(
  { ready, fair, scheduled }: Pick<Lines, 'ready' | 'fair' | 'scheduled'>,
  max: number,
  upTo: number,
): readonly Entry[] {
  const chosen: Entry[] = []
  for (const [priority, line] of ready.slice(0, upTo + 1).entries()) {
    if (chosen.length < max) chosen.push(...oldestOf(line, max - chosen.length))
    const left = max - chosen.length
    if (left > 0) chosen.push(...(fair[priority]?.oldestOf(left, mayGo) ?? []))
  }
  if (chosen.length >= max) return chosen
  const late = scheduled.items.filter((entry) => mayGo(entry) && entry.envelope.priority <= upTo)
  late.sort((a, b) => b.readyAt - a.readyAt)
  return [...chosen, ...late.slice(0, max - chosen.length)]
}

/** Out and in again: a heap knows only its first. */
function oldestOf(line: Heap<Entry>, max: number): readonly Entry[] {
  const seen: Entry[] = []
  let found = 0
  for (let entry = line.peek(); entry !== undefined && found < max; entry = line.peek()) {
    line.remove(entry)
    seen.push(entry)
    if (mayGo(entry)) found += 1
  }
  for (const entry of seen) line.push(entry)
  return seen.filter(mayGo)
}

function mayGo({ envelope }: Entry): boolean {
  return envelope.orderingKey === undefined
}

/** Takes it out; with a reason it becomes dead letters. */
export function shedOf(
  queue: MemoryQueue,
  { max, upTo, reason }: ShedOptions,
  now: number,
): number {
  queue.sweep(now)
  const gone = queue.firstToGo(max, upTo)
  for (const entry of gone) queue.remove(entry, now)
  if (reason === undefined) return gone.length
  const { name, owner } = queue.spec
  for (const { envelope, history, sentAt } of gone) {
    const errorClass = 'permanent'
    queue.dead.add({
      envelope,
      queue: name,
      owner,
      errorClass,
      reason,
      history,
      sentAt,
      deadAt: now,
    })
  }
  return gone.length
}
