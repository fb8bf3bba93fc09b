import { type Clock, pause } from '../model/clock.ts'
import type { Sent, Settled } from '../model/delivery.ts'
import { MillraceError } from '../model/errors.ts'
import type { Fault } from '../model/fault.ts'
import type { Layer, Subscription, Transport } from '../transport/transport.ts'

/** What goes wrong with one call. */
export type Mishap =
  /** The call rejects, nothing was done. */
  | 'rejected'
  /** Some items answer `unavailable`, the others are done. Calls without items reject instead. */
  | 'refused'
  /** Everything was done, then the answer was lost: the call rejects with outcome `unknown`. */
  | 'unanswered'
  /** Done, but later than expected. */
  | 'slow'

export interface FaultyCall {
  readonly act: 'send' | 'receive' | 'settle' | 'renew'
  readonly queue: string
  readonly items: number
}

export interface FaultyOptions {
  /** 0 <= n < 1; a seeded one makes the run repeatable. */
  readonly random: () => number
  readonly clock: Clock
  /** How likely each mishap is, 0 to 1 each. Default: none. */
  readonly rates?: Partial<Record<Mishap, number>>
  /** Decides instead of `rates`: a script for one test. */
  readonly plan?: (call: FaultyCall) => Mishap | undefined
  /** How long a slow call takes, in ms. Default 100. */
  readonly slowMs?: number
  readonly onMishap?: (call: FaultyCall, mishap: Mishap) => void
}

/** Each as often as `rates` say, in this order. */
export const mishapNames: readonly Mishap[] = ['rejected', 'refused', 'unanswered', 'slow']

/**
 * Weakens a transport on purpose, within what the seam allows: whoever stands on top must lose
 * nothing. It never invents a delivery of an acked message and never answers ok for what was not
 * done.
 */
export function faulty(options: FaultyOptions): Layer {
  const faults = new WeakMap<object, Fault>()
  const failing = newFailing(options, faults)
  return (inner) => {
    const transport: Transport = {
      ...inner,
      send: (queue, batch, sendOptions) =>
        failing.batched(
          { act: 'send', queue, items: batch.length },
          batch,
          (some): Promise<readonly Sent[]> => inner.send(queue, some, sendOptions),
          sendOptions.atomic ?? false,
        ),
      async subscribe(queue, subscribeOptions) {
        return faultySubscription(await inner.subscribe(queue, subscribeOptions), queue, failing)
      },
      diagnose(error) {
        const known = typeof error === 'object' && error !== null ? faults.get(error) : undefined
        return known ?? inner.diagnose(error)
      },
    }
    return transport
  }
}

function faultySubscription(inner: Subscription, queue: string, failing: Failing): Subscription {
  const { renew } = inner
  return {
    ...inner,
    receive: (options) =>
      failing.whole({ act: 'receive', queue, items: 0 }, () => inner.receive(options)),
    settle: (batch) =>
      failing.batched(
        { act: 'settle', queue, items: batch.length },
        batch,
        (some): Promise<readonly Settled[]> => inner.settle(some),
        false,
      ),
    ...(renew && {
      renew: (batch, leaseMs) =>
        failing.batched(
          { act: 'renew', queue, items: batch.length },
          batch,
          (some): Promise<readonly Settled[]> => renew(some, leaseMs),
          false,
        ),
    }),
  }
}

type Failed = { readonly ok: false; readonly fault: Fault }

interface Failing {
  whole<T>(call: FaultyCall, run: () => Promise<T>): Promise<T>
  batched<Item, Outcome>(
    call: FaultyCall,
    batch: readonly Item[],
    run: (some: readonly Item[]) => Promise<readonly Outcome[]>,
    together: boolean,
  ): Promise<readonly (Outcome | Failed)[]>
}

function newFailing(options: FaultyOptions, faults: WeakMap<object, Fault>): Failing {
  const { random, clock, slowMs = 100 } = options
  const fail = (call: FaultyCall, outcome: Fault['outcome']): never => {
    const error = new MillraceError(
      'MILLRACE_UNAVAILABLE',
      `injected fault: ${call.act} on queue "${call.queue}", outcome ${outcome}`,
      { retryable: true },
    )
    faults.set(error, { code: 'unavailable', retryable: true, outcome, cause: error })
    throw error
  }
  const next = (call: FaultyCall): Mishap | undefined => {
    const mishap = options.plan ? options.plan(call) : drawMishap(options)
    if (mishap) options.onMishap?.(call, mishap)
    return mishap
  }
  const suffer = async <T>(
    call: FaultyCall,
    mishap: Mishap | undefined,
    run: () => Promise<T>,
  ): Promise<T> => {
    if (mishap === 'rejected' || mishap === 'refused') return fail(call, 'notApplied')
    if (mishap === 'slow') await pause(clock, slowMs)
    const result = await run()
    return mishap === 'unanswered' ? fail(call, 'unknown') : result
  }
  return {
    whole: (call, run) => suffer(call, next(call), run),
    async batched(call, batch, run, together) {
      const mishap = next(call)
      if (mishap !== 'refused' || together) return suffer(call, mishap, () => run(batch))
      const chosen = batch.map(() => random() < 0.5)
      const done = await run(batch.filter((_, at) => !chosen[at]))
      const answers = done.values()
      return chosen.map((refused) => (refused ? refusal : nextAnswer(answers)))
    },
  }
}

const refusal: Failed = {
  ok: false,
  fault: { code: 'unavailable', retryable: true, outcome: 'notApplied' },
}

function nextAnswer<T>(answers: Iterator<T>): T | Failed {
  const { done, value } = answers.next()
  return done ? refusal : value
}

/** One of them or none, as likely as `rates` say. */
export function drawMishap({
  random,
  rates = {},
}: Pick<FaultyOptions, 'random' | 'rates'>): Mishap | undefined {
  let left = random()
  for (const mishap of mishapNames) {
    left -= rates[mishap] ?? 0
    if (left < 0) return mishap
  }
  return undefined
}
