/**
 * What `work` gives, unless one of the signals fires first: then it rejects with the reason, the work goes on, and nobody hears of it.
 * Cheaper than AbortSignal.any.
 */
export async function untilAborted<T>(
  work: Promise<T>,
  signals: readonly AbortSignal[],
): Promise<T> {
  const { promise, resolve, reject } = Promise.withResolvers<T>()
  const abort = (event: Event): void => {
    const { target } = event
    reject(target instanceof AbortSignal ? target.reason : undefined)
  }
  for (const signal of signals) signal.addEventListener('abort', abort, { once: true })
  // One may have fired before.
  const fired = signals.find((signal) => signal.aborted)
  if (fired !== undefined) reject(fired.reason)
  work.then(resolve, reject)
  try {
    return await promise
  } finally {
    for (const signal of signals) signal.removeEventListener('abort', abort)
  }
}
