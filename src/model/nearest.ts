/** The known word nearest to a mistyped one; undefined when none is near. */
export function nearest(word: string, known: readonly string[]): string | undefined {
  let best: string | undefined
  let bestDistance = Math.max(2, Math.floor(word.length / 3)) + 1
  for (const candidate of known) {
    const distance = distanceOf(word, candidate)
    if (distance < bestDistance) [best, bestDistance] = [candidate, distance]
  }
  return best
}

function distanceOf(word: string, candidate: string): number {
  const [mine, other] = [word.toLowerCase(), candidate.toLowerCase()]
  if (singular(mine) === singular(other)) return 0
  // Of equals, the one whose end is missing: "migrat" is "migrate" rather than "migrant".
  const edits = editDistance(mine, other) - (other.startsWith(mine) ? 0.5 : 0)
  return Math.min(edits, wordsMissing(word, candidate) ?? edits)
}

/** Enough to see that "retries" and "retry" are one word; it need not be one itself. */
function singular(word: string): string {
  return word
    .replace(/ies$/, 'y')
    .replace(/(s|x|z|ch|sh)es$/, '$1')
    .replace(/([^s])s$/, '$1')
}

/** Further than one slip of the finger, nearer than two. */
const WORDS_MISSING = 1.5

/** One name goes on where the other ends, with a new word: "concurrency" for "concurrencyLimit". Of two, the one with less of it. */
function wordsMissing(word: string, candidate: string): number | undefined {
  const [short = '', long = ''] = [word, candidate].sort((a, b) => a.length - b.length)
  const rest = long.slice(short.length)
  const isOn = short !== '' && long.toLowerCase().startsWith(short.toLowerCase())
  return isOn && /^[\p{Lu}._-]/u.test(rest) ? WORDS_MISSING - 0.4 / rest.length : undefined
}

function editDistance(a: string, b: string): number {
  let previous = Array.from({ length: b.length + 1 }, (_, i) => i)
  for (let i = 1; i <= a.length; i++) {
    const current = [i]
    for (let j = 1; j <= b.length; j++) {
      const substitution = (previous[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      current.push(Math.min(substitution, (previous[j] ?? 0) + 1, (current[j - 1] ?? 0) + 1))
    }
    previous = current
  }
  return previous[b.length] ?? 0
}
