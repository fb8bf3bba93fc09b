/** A value now or later; synchronous backends (SQLite) answer now. */
export type MaybePromise<T> = T | Promise<T>
