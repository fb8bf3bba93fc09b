let holders = 0

/** Names one part of this process to the store: what one holder has is given to it twice. Tests give every app the same random numbers. */
export function holderOf(random: () => number): string {
  const parts = Array.from({ length: 4 }, () => random().toString(36).slice(2, 8))
  return [...parts, holders++].join('-')
}
