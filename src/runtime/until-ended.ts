import { isPromise, type MaybePromise } from '../model/maybe-promise.ts'

/**
 * What `work` gives, unless one of the signals fires first: then its reason. The work itself goes on, and nobody hears of it.
 * Answers at once what is there at once.
 */
export function untilEnded<T>(
  work: MaybePromise<T>,
  ...signals: readonly (AbortSignal | undefined)[]
): MaybePromise<T> {
  if (!isPromise(work)) return work
  const ends = signals.filter((signal) => signal !== undefined)
  return new Promise<T>((resolve, reject) => {
    const end = (): void => reject(ends.find(({ aborted }) => aborted)?.reason)
    const leave = (): void => {
      for (const signal of ends) signal.removeEventListener('abort', end)
    }
    for (const signal of ends) signal.addEventListener('abort', end, { once: true })
    work.then(resolve, reject).finally(leave)
    if (ends.some(({ aborted }) => aborted)) end()
  })
}
