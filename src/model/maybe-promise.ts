import { read } from './probe.ts'

/** A value now or later; synchronous backends (SQLite) answer now. */
export type MaybePromise<T> = T | Promise<T>

export function isPromise<T>(value: MaybePromise<T>): value is Promise<T> {
  return typeof value === 'object' && value !== null && 'then' in value
}

/** `then` that stays synchronous when the value is already there. */
export function chain<T, R>(
  value: MaybePromise<T>,
  next: (value: T) => MaybePromise<R>,
): MaybePromise<R> {
  // A schema may answer with any thenable; from here on it is a promise.
  return isPromise(value) ? Promise.resolve(value).then(next) : next(value)
}

/** `catch` that stays synchronous when nothing had to be waited for: `recover` gets what was thrown, at once or later. */
export function recovered<T>(
  run: () => MaybePromise<T>,
  recover: (error: unknown) => Promise<T>,
): MaybePromise<T> {
  try {
    const value = run()
    return isPromise(value) ? value.catch(recover) : value
  } catch (error) {
    return recover(error)
  }
}

/** Runs at once, so that what is synchronous has happened when the call returns; errors become rejections. */
export function promised<T>(run: () => MaybePromise<T>): Promise<T> {
  try {
    return Promise.resolve(run())
  } catch (error) {
    return Promise.reject(error)
  }
}

/** By shape, for promises of another realm or of a library. */
export function isThenable(value: unknown): boolean {
  return typeof read(value, 'then') === 'function'
}

/** For an answer that should have been there at once: nobody else waits for it, and its rejection must not end the process. */
export function unawaited(answer: unknown): void {
  if (isThenable(answer)) Promise.resolve(answer).catch(() => undefined)
}
