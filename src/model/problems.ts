import { type ErrorDetails, OptionsError } from './errors.ts'
import { nearest } from './nearest.ts'
import { read } from './probe.ts'

/** Collects everything that is wrong with a set of options, so that a user sees it all at once. */
export interface Problems {
  add(problem: string): void
  /** A number within bounds, or the default when absent. */
  number(name: string, value: unknown, rule: NumberRule): number
  /**
   * Names the nearest known key for each unknown one, and each that is null: an option is left out, or it is undefined. `within` is the option that holds the object.
   * @throws MILLRACE_INVALID_OPTIONS at once when the options themselves are no object, as nothing else can be checked
   */
  knownKeys(value: unknown, known: readonly string[], within?: string): void
  /** A function, or absent. */
  optionalFunction(name: string, value: unknown): void
  /** An AbortSignal, or absent. */
  optionalSignal(name: string, value: unknown): void
  /** What was found so far. */
  all(): readonly string[]
  /** @throws MILLRACE_INVALID_OPTIONS when there is any problem. */
  throwIfAny(): void
}

export interface NumberRule {
  readonly min: number
  readonly max: number
  readonly integer?: boolean
  readonly default?: number
}

/** `fields` go into the error beside the problems. */
export function problems(what: string, fields?: ErrorDetails['fields']): Problems {
  const found: string[] = []
  /** Null means nothing in JSON and in databases; here whoever gives it may believe that something is switched off. */
  const nulls: string[] = []
  const isSaid = (name: string): boolean =>
    found.some((problem) => problem.startsWith(`${name}:`) || problem.startsWith(`${name} `))
  const all = (): readonly string[] => [
    ...found,
    ...nulls
      .filter((name) => !isSaid(name))
      .map((name) => `${name}: expected a value, got null; leave it out for its default`),
  ]
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
      if (!isObject(value)) {
        if (within === undefined) {
          throw new OptionsError(what, [`expected an object of options, got ${show(value)}`])
        }
        found.push(`${within}: expected { ${known.join(', ')} }, got ${show(value)}`)
        return
      }
      const where = within === undefined ? '' : `${within}.`
      for (const key of Object.keys(value)) {
        if (known.includes(key)) {
          if (read(value, key) === null && !OTHERS.includes(key)) nulls.push(`${where}${key}`)
          continue
        }
        const near = nearest(key, known)
        found.push(
          `unknown option "${where}${key}"${near ? `, did you mean "${where}${near}"?` : ''}`,
        )
      }
    },
    optionalFunction: (name, value) => {
      if (value === undefined || typeof value === 'function') return
      found.push(`${name}: expected a function, got ${show(value)}`)
    },
    optionalSignal: (name, value) => {
      if (value === undefined || isSignal(value)) return
      found.push(`${name}: expected an AbortSignal, got ${show(value)}`)
    },
    all,
    throwIfAny: () => {
      const problems = all()
      if (problems.length > 0) throw new OptionsError(what, problems, fields)
    },
  }
}

/**
 * A page's cursor is null at the end of its list, and goes back in as it came. A `tx` that is none is refused as such, with a code of its own.
 */
const OTHERS: readonly string[] = ['cursor', 'tx']

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** By shape, for signals of another realm or of a polyfill. */
export function isSignal(value: unknown): value is AbortSignal {
  return (
    typeof read(value, 'aborted') === 'boolean' &&
    typeof read(value, 'addEventListener') === 'function' &&
    typeof read(value, 'throwIfAborted') === 'function'
  )
}

function isWithin(value: unknown, rule: NumberRule): value is number {
  if (typeof value !== 'number' || !Number.isFinite(value)) return false
  if (rule.integer !== false && !Number.isInteger(value)) return false
  return value >= rule.min && value <= rule.max
}

const SHOWN_MAX = 80

/** A value as an error message shows it: short, one line. */
export function show(value: unknown): string {
  if (typeof value === 'string') {
    const shown = JSON.stringify(value.slice(0, SHOWN_MAX))
    return value.length > SHOWN_MAX ? `${shown}… (${value.length} characters)` : shown
  }
  if (typeof value === 'function') return 'a function'
  if (Array.isArray(value))
    return value.length === 0 ? 'an empty list' : `a list of ${value.length}`
  if (typeof value === 'object' && value !== null) {
    return Object.keys(value).length === 0 ? 'an empty object' : 'an object'
  }
  return String(value)
}
