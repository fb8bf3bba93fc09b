import { OptionsError } from '../model/errors.ts'
import { nearest } from '../model/nearest.ts'

/** Collects everything that is wrong with a set of options, so that a user sees it all at once. */
export interface Problems {
  add(problem: string): void
  /** A number within bounds, or the default when absent. */
  number(name: string, value: unknown, rule: NumberRule): number
  /** Names the nearest known key for each unknown one. */
  knownKeys(value: object, known: readonly string[], within?: string): void
  /** @throws MILLRACE_INVALID_OPTIONS when there is any problem. */
  throwIfAny(): void
}

export interface NumberRule {
  readonly min: number
  readonly max: number
  readonly integer?: boolean
  readonly default?: number
}

export function problems(what: string): Problems {
  const found: string[] = []
  return {
    add: (problem) => void found.push(problem),
    number: (name, value, rule) => {
      if (value === undefined && rule.default !== undefined) return rule.default
      if (isWithin(value, rule)) return value
      const kind = rule.integer === false ? 'a number' : 'an integer'
      found.push(`${name}: expected ${kind} from ${rule.min} to ${rule.max}, got ${show(value)}`)
      return rule.default ?? rule.min
    },
    knownKeys: (value, known, within) => {
      for (const key of Object.keys(value)) {
        if (known.includes(key)) continue
        const near = nearest(key, known)
        const where = within === undefined ? '' : `${within}.`
        found.push(
          `unknown option "${where}${key}"${near ? `, did you mean "${where}${near}"?` : ''}`,
        )
      }
    },
    throwIfAny: () => {
      if (found.length > 0) throw new OptionsError(what, found)
    },
  }
}

function isWithin(value: unknown, rule: NumberRule): value is number {
  if (typeof value !== 'number' || !Number.isFinite(value)) return false
  if (rule.integer !== false && !Number.isInteger(value)) return false
  return value >= rule.min && value <= rule.max
}

/** A value as an error message shows it: short, one line. */
export function show(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value.slice(0, 80))
  if (typeof value === 'function') return 'a function'
  if (typeof value === 'object' && value !== null)
    return Array.isArray(value) ? 'an array' : 'an object'
  return String(value)
}
