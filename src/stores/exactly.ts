/** The nearest whole number that a double holds exactly. */
export function exactly(sum: number): number {
  return Math.min(Number.MAX_SAFE_INTEGER, Math.max(Number.MIN_SAFE_INTEGER, sum))
}
