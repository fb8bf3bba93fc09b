/**
 * What is done of one lane of a log, for backends that commit only a position. The position is the end of the unbroken prefix
 * of what is done; a note beside it says what is done beyond, so that the next holder does not run it again.
 */
export interface OffsetLedger {
  /** This offset was handed out; they come in growing order, with gaps. False: it was done before, leave it out. */
  take(offset: bigint): boolean
  /** Harmless when repeated. */
  done(offset: bigint): void
  /** Handed out here and not done. */
  isOpen(offset: bigint): boolean
  /** The first offset that is not done; undefined before anything is known. */
  position(): bigint | undefined
  /** What is done beyond the position, for `openLedger`. Empty when there is nothing; bounded, and never says too much. */
  note(): string
}

/**
 * Longest note. Kafka keeps 4,096 bytes beside a position (`offset.metadata.max.bytes`); 2,000 characters hold about 400
 * separate messages in flight, and what is done beyond them runs again after a crash.
 */
export const NOTE_MAX = 2_000

/** Version of the note's form: base 36 numbers, the position, then lengths of runs, in turn not done and done. */
const FORM = '1'

/** Longest part of a note: a run that is not done, and one that is. */
const PAIR_MAX = 28

/** So long that something may have been left out of it. */
export function isFullNote(note: string): boolean {
  return note.length > NOTE_MAX - PAIR_MAX
}

/** @param note what the holder before left; one that cannot be read, or is another's, counts as absent */
export function openLedger(note = ''): OffsetLedger {
  const before = parsed(note)
  /** Below the horizon and not done, in growing order: a Map keeps it, as each new one is above all others. */
  const unfinished = new Set<bigint>(before?.unfinished)
  /** Of these, what the note spoke of and nobody took here yet. What is passed over without being taken exists no more. */
  const expected = before?.unfinished ?? []
  let passed = 0
  let horizon = before?.horizon

  return {
    take(offset) {
      for (let next = expected[passed]; next !== undefined && next <= offset; ) {
        if (next < offset) unfinished.delete(next)
        passed += 1
        next = expected[passed]
      }
      if (horizon !== undefined && offset < horizon) return unfinished.has(offset)
      unfinished.add(offset)
      horizon = offset + 1n
      return true
    },
    done: (offset) => void unfinished.delete(offset),
    isOpen: (offset) => unfinished.has(offset),
    position: () => first(unfinished) ?? horizon,
    note: () => (horizon === undefined ? '' : written(unfinished, horizon)),
  }
}

function first(offsets: ReadonlySet<bigint>): bigint | undefined {
  for (const offset of offsets) return offset
  return undefined
}

/** Stops at a run of done ones that no longer fits: what is left out counts as not done. */
function written(unfinished: ReadonlySet<bigint>, horizon: bigint): string {
  const position = first(unfinished)
  if (position === undefined) return ''
  let text = `${FORM} ${position.toString(36)}`
  let runFrom = position
  let runEnd = position
  for (const offset of [...unfinished, horizon]) {
    if (offset === runEnd && offset !== horizon) {
      runEnd = offset + 1n
      continue
    }
    if (offset > runEnd) {
      const pair = ` ${(runEnd - runFrom).toString(36)} ${(offset - runEnd).toString(36)}`
      if (text.length + pair.length > NOTE_MAX) break
      text += pair
    }
    runFrom = offset
    runEnd = offset + 1n
  }
  return text.split(' ').length > 2 ? text : ''
}

interface Before {
  readonly unfinished: readonly bigint[]
  readonly horizon: bigint
}

const NUMBER = /^[0-9a-z]{1,13}$/

/** A note of ours has at most NOTE_MAX characters, but its runs of unfinished ones can be as long as somebody wrote. */
const UNFINISHED_MAX = 100_000

function parsed(note: string): Before | undefined {
  const [form, ...numbers] = note.split(' ')
  if (form !== FORM || note.length > NOTE_MAX) return undefined
  if (numbers.length < 3 || numbers.length % 2 === 0) return undefined
  if (!numbers.every((number) => NUMBER.test(number))) return undefined
  const [position = 0, ...runs] = numbers.map((number) => Number.parseInt(number, 36))
  const unfinished: bigint[] = []
  let at = position
  for (const [i, length] of runs.entries()) {
    if (i % 2 === 0) {
      if (unfinished.length + length > UNFINISHED_MAX) return undefined
      for (let offset = at; offset < at + length; offset++) unfinished.push(BigInt(offset))
    }
    at += length
    if (!Number.isSafeInteger(at)) return undefined
  }
  return { unfinished, horizon: BigInt(at) }
}
