import { lineTurn } from '../transport/ageing.ts'
import type { ReceiveOptions } from '../transport/transport.ts'
import type { LevelAsking } from './level-asking.ts'
import type { InHand, LevelLine } from './level-line.ts'
import type { LevelsInHand } from './levels-in-hand.ts'

export interface LevelTurns {
  readonly lines: readonly LevelLine[]
  readonly inHand: LevelsInHand
  readonly asking: LevelAsking
  readonly ageingMs: number
}

/** Takes what is next in the order of ageing, `max` at most, and asks a level again that ran out before its turn was over. */
export async function takeTurns(
  { lines, inHand, asking, ageingMs }: LevelTurns,
  { max, signal }: Omit<ReceiveOptions, 'waitMs'>,
): Promise<readonly InHand[]> {
  const suspect = inHand.all().find(isAlone)
  if (suspect !== undefined) return [await alone(inHand, suspect)]
  const taken: InHand[] = []
  while (taken.length < max) {
    const turn = lineTurn(
      lines.flatMap((line) => line.head() ?? []),
      ageingMs,
    )
    if (turn === undefined) break
    const { line } = turn.head
    asking.lead(line)
    taken.push(...line.take(turn.untilReadyAt, max - taken.length))
    const ranOut = line.waiting.length === 0 && line.mayHaveMore()
    if (ranOut && taken.length < max && !signal.aborted) {
      await asking.more(line, { max: max - taken.length, signal })
      // It has its turn in another receive: not beside what runs by then.
      await inHand.giveBack(inHand.all().filter(isAlone))
    }
  }
  return taken
}

function isAlone({ delivery }: InHand): boolean {
  return delivery.alone
}

/**
 * A suspect is alone in hand, too. To a backend that counts crashes what waits here is handed out: if the suspect kills this
 * process again, it would be blamed on messages that never ran.
 */
async function alone(inHand: LevelsInHand, suspect: InHand): Promise<InHand> {
  await inHand.giveBack(inHand.all().filter((one) => one !== suspect))
  suspect.line.remove([suspect])
  return suspect
}
