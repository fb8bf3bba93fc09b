import { type Clock, pause } from '../model/clock.ts'
import type { Delivery } from '../model/delivery.ts'
import type { Store } from '../store/store.ts'
import type { SwappedStates } from '../store/swapped-states.ts'
import { untouched } from '../transport/settling.ts'
import type { ReceiveOptions, Subscription, Transport } from '../transport/transport.ts'
import { soon } from './soon.ts'

/** How often a receive looks whether its paused queue was resumed. */
const LOOK_MS = 250

/** Lets queues be paused for all workers, for brokers that cannot: the store remembers it, and whoever got messages asks before they are handed out. */
export function pauses(inner: Transport, store: Store, clock: Clock): Transport {
  const { browse } = inner
  /** One entry for each queue of the app. */
  const lastKnown = new Map<string, boolean>()
  const isPaused = async (queue: string): Promise<boolean> =>
    (await store.states.read(nameOf(queue)))?.value === PAUSED
  return {
    ...inner,
    ...(browse && {
      browse: {
        ...browse,
        gauge: async (queue) => {
          // Who asks how full a queue is must not wait for the store: the last answer stands.
          const asked = soon(clock, isPaused(queue))
          const [gauge, answer] = await Promise.all([browse.gauge(queue), asked])
          const paused = answer ?? lastKnown.get(queue) ?? false
          lastKnown.set(queue, paused)
          return { ...gauge, paused }
        },
        setPaused: (queue, paused) => write(store.states, nameOf(queue), paused ? PAUSED : 'open'),
      },
    }),
    async subscribe(queue, options) {
      const subscription = await inner.subscribe(queue, options)
      return pausedSubscription(subscription, () => isPaused(queue), clock)
    },
  }
}

const PAUSED = 'paused'

function nameOf(queue: string): string {
  return `paused:${queue}`
}

/** The last one to write wins, as with any switch. */
async function write(states: SwappedStates, name: string, value: string): Promise<void> {
  for (;;) {
    const found = await states.read(name)
    if (found?.value === value) return
    if ((await states.swap(name, found?.version, value)) !== undefined) return
  }
}

function pausedSubscription(
  inner: Subscription,
  isPaused: () => Promise<boolean>,
  clock: Clock,
): Subscription {
  /** Whether to ask before the broker is asked; a queue that works is only asked about when something came. */
  let doubtful = true

  const giveBack = (came: readonly Delivery[]): Promise<unknown> =>
    inner.settle(came.map(untouched))

  /** What came although the queue is paused goes back as if it had never been handed out; so when nobody can say. */
  const unlessPaused = async (came: readonly Delivery[]): Promise<readonly Delivery[]> => {
    if (came.length === 0) return came
    doubtful = true
    try {
      doubtful = await isPaused()
    } finally {
      if (doubtful) await giveBack(came)
    }
    return doubtful ? [] : came
  }

  const receive = async ({ max, waitMs, signal }: ReceiveOptions): Promise<readonly Delivery[]> => {
    const until = clock.now() + waitMs
    for (;;) {
      const leftMs = Math.max(0, until - clock.now())
      if (doubtful) doubtful = await isPaused()
      if (doubtful) await pause(clock, Math.min(leftMs, LOOK_MS), signal)
      else {
        const kept = await unlessPaused(await inner.receive({ max, waitMs: leftMs, signal }))
        if (kept.length > 0) return kept
      }
      if (signal.aborted || clock.now() >= until) return []
    }
  }
  return { ...inner, receive }
}
