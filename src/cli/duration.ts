import { UsageError } from './usage-error.ts'

const UNITS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const

type Unit = keyof typeof UNITS

const FORM = /^(\d{1,12}(?:\.\d{1,3})?)(ms|s|m|h|d)$/

/** `500ms`, `5s`, `1.5m`, `1h`, `1d` as ms. A bare number is refused: nobody can know its unit. */
export function parseDuration(option: string, text: string): number {
  const [, digits, unit] = FORM.exec(text) ?? []
  if (digits === undefined || !isUnit(unit)) {
    throw new UsageError(
      `${option}: expected a duration such as 500ms, 5s, 2m, 1h or 1d, got ${JSON.stringify(text)}`,
    )
  }
  return Math.round(Number(digits) * UNITS[unit])
}

function isUnit(unit: string | undefined): unit is Unit {
  return unit !== undefined && unit in UNITS
}

const LARGEST_FIRST: readonly Unit[] = ['d', 'h', 'm', 's']

/** The two largest units, for people: `1 h 30 m`, `2 s`, `350 ms`. */
export function formatDuration(ms: number): string {
  if (ms < UNITS.s) return `${Math.round(ms)} ms`
  if (ms < 10 * UNITS.s) return `${Math.round(ms / 100) / 10} s`
  let leftS = Math.round(ms / UNITS.s)
  const parts: string[] = []
  for (const unit of LARGEST_FIRST) {
    const size = UNITS[unit] / UNITS.s
    const n = Math.floor(leftS / size)
    leftS -= n * size
    if (n > 0) parts.push(`${n} ${unit}`)
    else if (parts.length > 0) break
  }
  return parts.slice(0, 2).join(' ')
}
