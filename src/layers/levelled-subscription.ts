import type { Clock } from '../model/clock.ts'
import type { Delivery, Settlement } from '../model/delivery.ts'
import type { Fault } from '../model/fault.ts'
import type { ReceiveOptions, Subscription } from '../transport/transport.ts'
import { handedOut, type Routing } from './handed-out.ts'
import { levelAsking } from './level-asking.ts'
import { type InHand, levelLine } from './level-line.ts'
import { type LevelTurns, takeTurns } from './level-turns.ts'
import { levelsInHand } from './levels-in-hand.ts'
import { stillOurs } from './still-ours.ts'
import { wakeable } from './wakeable.ts'

export interface LevelledOptions {
  /** One for each level, the lowest first. */
  readonly levels: readonly Subscription[]
  readonly ageingMs: number
  readonly leaseMs: number
  readonly clock: Clock
  readonly diagnose: (error: unknown) => Fault
}

/**
 * The levels of a queue as one: hands out in the order of ageing. To know whose turn it is, one message of each level is in hand, and of
 * the one that went last as many as were asked for. So what waits in hand is never more than that and one for each level.
 */
export function levelledSubscription(options: LevelledOptions): Subscription {
  const { levels, ageingMs, clock, leaseMs, diagnose } = options
  const lines = levels.map((inner, level) => levelLine({ level, inner, clock }))
  const inHand = levelsInHand({ lines, clock, leaseMs })
  const asking = levelAsking(lines, inHand)
  const handed = handedOut()
  const receive = receiving({ lines, inHand, asking, ageingMs, clock, leaseMs })
  const settling: Routing<Settlement> = {
    deliveryOf: ({ delivery }) => delivery,
    inward: (one, delivery) => ({ ...one, delivery }),
    act: ({ inner }, some) => inner.settle(some),
    diagnose,
  }
  const renewing = (ms: number): Routing<Delivery> => ({
    deliveryOf: (delivery) => delivery,
    inward: (_, delivery) => delivery,
    act: async ({ inner }, some) => (await inner.renew?.(some, ms)) ?? [],
    diagnose,
  })
  return {
    receive: async (asked) => (await receive(asked)).map(handed.out),
    settle: (batch) => handed.byLevel(batch, settling),
    ...(levels.every(({ renew }) => renew !== undefined) && {
      renew: (batch, ms) => handed.byLevel(batch, renewing(ms)),
    }),
    resize: (maxInFlight) => {
      for (const inner of levels) inner.resize(maxInFlight)
    },
    close: async () => {
      inHand.close()
      await Promise.all(levels.map((inner) => inner.close()))
    },
  }
}

interface Receiving extends LevelTurns {
  readonly clock: Clock
  readonly leaseMs: number
}

type Receive = (options: ReceiveOptions) => Promise<readonly InHand[]>

function receiving(receiver: Receiving): Receive {
  const { clock, lines, inHand, asking } = receiver
  const wake = wakeable()

  const untilFound: Receive = async ({ max, waitMs, signal }) => {
    const until = clock.now() + waitMs
    for (;;) {
      const asked = { max, waitMs: Math.max(0, until - clock.now()), signal }
      await asking.look(asked)
      const found = await confirmed(receiver, await takeTurns(receiver, asked))
      if (found.length > 0) return found
      asking.throwFailure()
      if (asked.waitMs === 0 || signal.aborted) return []
      await wake.during(asked, async (ended) => {
        await asking.wait({ ...asked, signal: ended })
        return []
      })
      const isOver = signal.aborted || inHand.isClosed || clock.now() >= until
      if (isOver && inHand.size() === 0) return []
    }
  }

  return async (options) => {
    // What a level failed with while others had something.
    asking.throwFailure()
    if (options.signal.aborted) return []
    const stop = inHand.asked()
    try {
      return await untilFound(options)
    } finally {
      if (options.signal.aborted) await inHand.giveBack(inHand.all())
      inHand.keep()
      stop()
      if (lines.some(({ waiting }) => waiting.length > 0)) wake.wake()
    }
  }
}

/** Long enough in hand that a lease may have ended, or somebody cancelled or settled it elsewhere. */
const WAITED_MS = 250

/** What waited is renewed as it is handed out; what is no longer ours is left out. */
async function confirmed(
  { clock, inHand, leaseMs }: Receiving,
  taken: readonly InHand[],
): Promise<readonly InHand[]> {
  inHand.letGo(taken)
  const now = clock.now()
  const waited = taken.filter(({ since }) => now - since >= WAITED_MS)
  if (waited.length === 0) return taken
  const gone = new Set<InHand>()
  try {
    for (const [{ inner }, some] of Map.groupBy(waited, ({ line }) => line)) {
      const deliveries = some.map(({ delivery }) => delivery)
      const ours = await stillOurs(inner, deliveries, leaseMs)
      for (const one of some) if (!ours.has(one.delivery)) gone.add(one)
    }
  } catch (error) {
    for (const [line, some] of Map.groupBy(taken, ({ line }) => line)) line.putBack(some)
    throw error
  }
  return taken.filter((one) => !gone.has(one))
}
