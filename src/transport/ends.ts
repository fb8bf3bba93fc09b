import type { Delivery } from '../model/delivery.ts'

/** What ends a receive before its time: its own signal, the close of its subscription or of the transport. */
export interface Ends {
  /** True when one of them has fired. */
  reached(): boolean
  /** One signal for all, made when it is first asked for: AbortSignal.any costs more than the rest of a receive. */
  signal(): AbortSignal
}

/** Receives until one of the signals fires; what fails after that answers empty. */
export async function untilEnded(
  signals: readonly AbortSignal[],
  receive: (ends: Ends) => Promise<readonly Delivery[]>,
): Promise<readonly Delivery[]> {
  let any: AbortSignal | undefined
  const ends: Ends = {
    reached: () => signals.some((signal) => signal.aborted),
    signal() {
      any ??= AbortSignal.any([...signals])
      return any
    },
  }
  try {
    return await receive(ends)
  } catch (error) {
    if (ends.reached()) return []
    throw error
  }
}
