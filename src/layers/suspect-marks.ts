import { type Clock, pause } from '../model/clock.ts'
import type { Delivery } from '../model/delivery.ts'
import { type AttemptHistory, afterCrash } from '../model/history.ts'
import { type CrashBook, type CrashEntry, crashKeyOf, NOBODY_ALONE } from './crash-book.ts'

/** The marks of one consumer: what it has in hand that others must count as a crash when it vanishes. */
export interface SuspectMarks {
  readonly size: number
  /** What is known of these beyond what came with them; who was in the hands of somebody who vanished has one crash more. */
  judge(deliveries: readonly Delivery[]): Promise<ReadonlyMap<Delivery, Delivery>>
  /** Marks these as ours and those as nobody's, in one write. Of a write that failed nothing is left, as far as can be. */
  begin(ours: readonly Delivery[], nobodys: readonly Delivery[]): Promise<void>
  of(delivery: Delivery): Mark | undefined
  /** It was settled, or goes on without a mark. */
  end(mark: Mark): void
  /** Takes back the mark of what is no longer ours, but lives: unless somebody else has it by now. */
  lose(mark: Mark): void
  /** Takes all back, because they are given up. */
  loseAll(): Promise<void>
}

export interface Mark {
  readonly key: string
  readonly delivery: Delivery
  readonly entry: CrashEntry
  readonly unwatch: () => void
}

export interface SuspectMarksOptions {
  readonly book: CrashBook
  readonly clock: Clock
  /** Nobody else has this name. */
  readonly me: string
}

/** It was handed out before, or may have been. */
export function isSuspect({ alone, deliveries }: Delivery): boolean {
  return alone || deliveries !== 1
}

/** Behind the name of a runner that ran it alone. */
const ALONE = '!'
const LOSE_TRIES = 3
const LOSE_AGAIN_MS = 1_000
const LOSE_ALL_MS = 2_000

export function suspectMarks({ book, clock, me }: SuspectMarksOptions): SuspectMarks {
  const marks = new Map<string, Mark>()
  const ending = new AbortController()
  const { takeBack, takeBackSoon } = takingBack(book, clock, ending.signal)
  let made = 0

  const end = (mark: Mark): void => {
    mark.unwatch()
    if (marks.get(mark.key) === mark) marks.delete(mark.key)
  }
  const lose = (mark: Mark): void => {
    end(mark)
    takeBackSoon(mark)
  }
  const put = (mark: Omit<Mark, 'unwatch'>): void => {
    const { lost } = mark.delivery.claim
    const onLost = (): void => lose(watched)
    const unwatch = (): void => lost.removeEventListener('abort', onLost)
    const watched: Mark = { ...mark, unwatch }
    marks.get(mark.key)?.unwatch()
    marks.set(mark.key, watched)
    if (lost.aborted) onLost()
    else lost.addEventListener('abort', onLost, { once: true })
  }
  const named = (delivery: Delivery): Omit<Mark, 'unwatch'> => {
    made += 1
    const runner = `${me} ${made}${delivery.alone ? ALONE : ''}`
    return { key: crashKeyOf(delivery), delivery, entry: { history: delivery.history, runner } }
  }

  return {
    get size() {
      return marks.size
    },
    judge: async (deliveries) => {
      const known = await book.read(deliveries.map(crashKeyOf))
      return new Map(
        deliveries.map((one) => [one, judged(one, known.get(crashKeyOf(one)), me, clock)]),
      )
    },
    begin: async (ours, others) => {
      const begun = ours.map(named)
      try {
        await book.write(
          new Map([
            ...others.map((one) => [crashKeyOf(one), nobodys(one)] as const),
            ...begun.map(({ key, entry }) => [key, entry] as const),
          ]),
        )
      } catch (error) {
        // It may have been written all the same.
        const unsure = begun.map((mark) => ({ ...mark, unwatch: () => {} }))
        await takeBack(unsure).catch(() => unsure.forEach(takeBackSoon))
        throw error
      }
      begun.forEach(put)
    },
    of: (delivery) => {
      const mark = marks.get(crashKeyOf(delivery))
      const isSame =
        mark?.delivery.claim === delivery.claim && mark.delivery.position === delivery.position
      return isSame ? mark : undefined
    },
    end,
    lose,
    loseAll: async () => {
      ending.abort()
      const all = [...marks.values()]
      if (all.length === 0) return
      all.forEach(end)
      const taken = new AbortController()
      const late = pause(clock, LOSE_ALL_MS, taken.signal)
      await Promise.race([takeBack(all).catch(() => {}), late])
      // A timer that is left would keep the process up.
      taken.abort()
    },
  }
}

interface TakingBack {
  takeBack(some: readonly Mark[]): Promise<void>
  /** In the background, and again when the store is away. */
  takeBackSoon(mark: Mark): void
}

function takingBack(book: CrashBook, clock: Clock, ending: AbortSignal): TakingBack {
  let losing: Mark[] = []
  /** Who else has one of these by now keeps it; between the look and the write its mark can be lost, never its message. */
  const takeBack = async (some: readonly Mark[]): Promise<void> => {
    const written = await book.read(some.map(({ key }) => key))
    const ours = some.filter(({ key, entry }) => written.get(key)?.runner === entry.runner)
    await book.write(new Map(ours.map(({ key, delivery }) => [key, nobodys(delivery)])))
  }
  const flush = async (): Promise<void> => {
    const some = losing
    losing = []
    for (let tries = 1; ; tries++) {
      try {
        return await takeBack(some)
      } catch {
        // At the end once more, and no wait.
        if (tries >= LOSE_TRIES || ending.aborted) return
        await pause(clock, LOSE_AGAIN_MS, ending)
      }
    }
  }
  return {
    takeBack,
    takeBackSoon: (mark) => {
      losing.push(mark)
      // All claims of a connection end in one turn.
      if (losing.length === 1) queueMicrotask(() => void flush())
    },
  }
}

function nobodys({ history, alone }: Delivery): CrashEntry {
  return { history, runner: alone ? NOBODY_ALONE : undefined }
}

function judged(
  delivery: Delivery,
  entry: CrashEntry | undefined,
  me: string,
  clock: Clock,
): Delivery {
  if (entry === undefined) return delivery
  const { runner } = entry
  const history = newer(entry.history, delivery.history)
  if (runner === undefined) return { ...delivery, history }
  if (runner === NOBODY_ALONE) return { ...delivery, history, alone: true }
  // Ours, so its holder lives: it lost the connection, and got the message again.
  if (runner.startsWith(`${me} `)) {
    return { ...delivery, history, alone: delivery.alone || runner.endsWith(ALONE) }
  }
  return { ...delivery, history: afterCrash(history, clock.now()), alone: true }
}

/** A crash stands in the entry alone, until the next counted release writes it where the history is kept. */
function newer(written: AttemptHistory, own: AttemptHistory): AttemptHistory {
  return written.redrives === own.redrives && written.counted > own.counted ? written : own
}
