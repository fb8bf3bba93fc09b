export interface LimitedCall {
  readonly tenant: string
  readonly n: number
}

/** What runs at any time, by the handlers' own word. */
export function limitedRuns() {
  const running = new Map<string, number>()
  const seen = { most: 0, mostOfKey: 0, ended: 0, runs: [] as LimitedCall[] }
  return {
    seen,
    began(call: LimitedCall): void {
      running.set(call.tenant, (running.get(call.tenant) ?? 0) + 1)
      const all = [...running.values()]
      const sum = all.reduce((total, n) => total + n, 0)
      seen.most = Math.max(seen.most, sum)
      seen.mostOfKey = Math.max(seen.mostOfKey, ...all)
      seen.runs.push(call)
    },
    ended({ tenant }: LimitedCall): void {
      running.set(tenant, (running.get(tenant) ?? 0) - 1)
      seen.ended++
    },
  }
}
