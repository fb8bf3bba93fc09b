/** Who is in a group, and what each one says it has. */
export interface Owning {
  readonly id: string
  readonly owned: readonly number[]
  /** Of its last assignment; what an older one says counts less. */
  readonly generation: number
}

/**
 * Shares partitions out as evenly as they go, and lets everybody keep what it can. What has to move is first taken from its
 * holder and given to nobody: when the holder has given it up it joins again, and only then somebody else gets it. So a
 * partition never has two holders, and all others go on meanwhile (KIP-429).
 */
export function assign(
  partitions: number,
  members: readonly Owning[],
): ReadonlyMap<string, readonly number[]> {
  const holders = holdersOf(partitions, members)
  const kept = new Map<string, number[]>(
    members.toSorted((a, b) => (a.id < b.id ? -1 : 1)).map(({ id }) => [id, []]),
  )
  for (const [partition, id] of holders) kept.get(id)?.push(partition)
  const least = Math.floor(partitions / Math.max(1, members.length))
  let extras = partitions % Math.max(1, members.length)
  const byMost = [...kept].sort(([, a], [, b]) => b.length - a.length)
  const room = new Map<string, number>()
  for (const [id, own] of byMost) {
    const quota = least + (extras > 0 ? 1 : 0)
    if (extras > 0) extras -= 1
    own.splice(quota)
    room.set(id, quota - own.length)
  }
  const free = Array.from({ length: partitions }, (_, at) => at).filter((at) => !holders.has(at))
  for (const partition of free) {
    const next = [...room].reduce((most, one) => (one[1] > most[1] ? one : most), ['', 0] as const)
    kept.get(next[0])?.push(partition)
    room.set(next[0], next[1] - 1)
  }
  return kept
}

/** Of two that claim one partition, the one whose assignment is newer has it. */
function holdersOf(partitions: number, members: readonly Owning[]): ReadonlyMap<number, string> {
  const holders = new Map<number, Owning>()
  for (const member of members) {
    for (const partition of member.owned) {
      const other = holders.get(partition)
      if (partition < 0 || partition >= partitions) continue
      if (other === undefined || other.generation < member.generation) {
        holders.set(partition, member)
      }
    }
  }
  return new Map([...holders].toSorted(([a], [b]) => a - b).map(([at, { id }]) => [at, id]))
}
