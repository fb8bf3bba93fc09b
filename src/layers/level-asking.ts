import type { ReceiveOptions } from '../transport/transport.ts'
import type { LevelLine } from './level-line.ts'
import type { LevelsInHand } from './levels-in-hand.ts'

/** Which levels are asked, and for how many. What they fail with is kept, so that one that is away does not hold up the others. */
export interface LevelAsking {
  /** Asks those of which nothing is in hand, unless they were empty a moment ago; with `waitMs` 0 these, too, when nothing else came. */
  look(options: ReceiveOptions): Promise<void>
  /** Asks each once, until one of them has something. Nothing is in hand. */
  wait(options: ReceiveOptions): Promise<void>
  more(line: LevelLine, options: Omit<ReceiveOptions, 'waitMs'>): Promise<void>
  /** It went last, so it is asked for as many as are wanted; the others for one, which shows whose turn it is. */
  lead(line: LevelLine): void
  /** @throws what a level failed with since the last time */
  throwFailure(): void
}

export function levelAsking(lines: readonly LevelLine[], inHand: LevelsInHand): LevelAsking {
  let leader = lines[0]
  let failure: { readonly error: unknown } | undefined

  const fetch = async (line: LevelLine, options: ReceiveOptions): Promise<number> => {
    try {
      return (await line.fetch(options)).length
    } catch (error) {
      failure ??= { error }
      return 0
    }
  }
  /** Together with one of each other level that has none. */
  const roomOf = (max: number, others: number): number =>
    Math.min(max, Math.max(1, max + lines.length - inHand.size() - others))
  const ask = async (some: readonly LevelLine[], options: ReceiveOptions): Promise<void> => {
    const found = new AbortController()
    const { waitMs } = options
    const room = roomOf(options.max, some.length - 1)
    const signal = waitMs > 0 ? AbortSignal.any([options.signal, found.signal]) : options.signal
    await Promise.all(
      some.map(async (line) => {
        const asked = { max: line === leader ? room : 1, waitMs, signal }
        const failedBefore = failure
        if ((await fetch(line, asked)) > 0 || failure !== failedBefore) found.abort()
      }),
    )
  }

  return {
    look: async (options) => {
      const { waitMs } = options
      const bare = lines.filter(({ waiting }) => waiting.length === 0)
      const seemEmpty = new Set(bare.filter((line) => line.seemsEmpty()))
      const atOnce = { ...options, waitMs: 0 }
      await ask(
        bare.filter((line) => !seemEmpty.has(line)),
        atOnce,
      )
      if (waitMs <= 0 && inHand.size() === 0) await ask([...seemEmpty], atOnce)
    },
    wait: (options) => ask(lines, options),
    more: async (line, { max, signal }) => {
      await fetch(line, { max: roomOf(max, 0), waitMs: 0, signal })
    },
    lead: (line) => {
      leader = line
    },
    throwFailure: () => {
      if (failure === undefined) return
      const { error } = failure
      failure = undefined
      throw error
    },
  }
}
