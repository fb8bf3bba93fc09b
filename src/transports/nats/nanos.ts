const NANOS_IN_MS = 1_000_000

/** The server counts in nanoseconds. */
export function nanos(ms: number): number {
  return Math.round(ms * NANOS_IN_MS)
}

/** 0 for what is not set. */
export function millis(nanoseconds: number | undefined): number {
  return Math.floor((nanoseconds ?? 0) / NANOS_IN_MS)
}
