import { messageOfError } from '../model/describe-error.ts'
import { type ErrorCode, hasCode, MillraceError, OptionsError } from '../model/errors.ts'
import { read } from '../model/probe.ts'

/** What start-up refuses, of all its parts together, so that a user sees it at once and not one error after another. */
export interface Refusals {
  /** Something is refused already: from now on parts are looked at, and nothing is made or changed. */
  any(): boolean
  add(sentences: readonly string[]): void
  /**
   * Waits for what `where` names, and notes what it refuses; undefined then. One that fails for another reason ends start-up at once, or is
   * a note in what was refused before. With the code of `unless` it is undefined, and no refusal.
   */
  of<T>(
    where: string,
    part: () => Promise<T>,
    options?: { readonly unless: ErrorCode | undefined },
  ): Promise<T | undefined>
  /**
   * @throws MILLRACE_INVALID_OPTIONS with all of it, or another code that all of it has; the error of the one part that refused,
   * when it was one alone.
   */
  throwIfAny(): void
}

export function refusals(found: readonly string[]): Refusals {
  const sentences = [...found]
  const codes = new Set<ErrorCode>(found.length > 0 ? [OPTIONS] : [])
  let sole: unknown
  const add = (more: readonly string[], code: ErrorCode = OPTIONS): void => {
    if (more.length === 0) return
    sentences.push(...more)
    codes.add(code)
    sole = undefined
  }
  const note = (where: string, error: unknown): void => {
    const isFirst = sentences.length === 0
    add(sentencesOf(where, error), codeOf(error))
    if (isFirst) sole = error
  }
  return {
    any: () => sentences.length > 0,
    add,
    of: async (where, part, { unless } = { unless: undefined }) => {
      try {
        return await part()
      } catch (error) {
        if (unless !== undefined && hasCode(error, unless)) return undefined
        if (!isRefusal(error) && sentences.length === 0) throw error
        note(where, error)
        return undefined
      }
    },
    throwIfAny: () => {
      if (sole !== undefined) throw sole
      if (sentences.length === 0) return
      const [code] = codes
      if (code === undefined || codes.size > 1 || code === OPTIONS) {
        throw new OptionsError('createMillrace', sentences)
      }
      const fields = { problems: sentences }
      throw new MillraceError(code, sentences.join('; '), { fields })
    },
  }
}

const OPTIONS = 'MILLRACE_INVALID_OPTIONS'

/** What trying again does not mend. */
const REFUSED = [
  OPTIONS,
  'MILLRACE_SCHEMA_OUTDATED',
  'MILLRACE_SCHEMA_TOO_NEW',
  'MILLRACE_MISSING_CLIENT',
] as const

function isRefusal(error: unknown): boolean {
  return codeOf(error) !== undefined
}

function codeOf(error: unknown): ErrorCode | undefined {
  return REFUSED.find((code) => hasCode(error, code))
}

/** Each says whose it is: beside the others it stands without the head of its own error. */
function sentencesOf(where: string, error: unknown): readonly string[] {
  const problems: unknown = read(error, 'problems')
  if (Array.isArray(problems)) return problems.map((one) => `${where}: ${one}`)
  const said = messageOfError(error)
  const [, head = '', rest = ''] = /^(\w+): (.*)$/s.exec(said) ?? []
  const isItsName = head !== '' && head.startsWith(where.split(' ').at(-1) ?? '')
  const text = `${where}: ${isItsName ? rest : said}`
  return [isRefusal(error) ? text : `${text}; what else it asks for is not known yet`]
}
