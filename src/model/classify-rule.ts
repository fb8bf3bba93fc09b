import type { Classification } from './classify.ts'

/** One line of the printed table. */
export interface Rule {
  readonly family: RuleFamily
  /** What it matches, for people. */
  readonly match: string
  readonly errorClass: Classification['errorClass']
  readonly why: string
}

export type RuleFamily =
  | 'Millrace'
  | 'schema'
  | 'HTTP'
  | 'AWS SDK'
  | 'gRPC'
  | 'SQLSTATE'
  | 'SQLite'
  | 'Node'
  | 'JavaScript'
  | 'default'

/** A rule that is found by the exact codes or names it lists. */
export interface CodeRule {
  readonly codes: readonly string[]
  readonly errorClass: Classification['errorClass']
  readonly why: string
}

/** Looks at one error value alone, never at its causes; undefined when it has no rule for it. */
export type Classifier = (error: unknown, now: number) => Classification | undefined

/** Finds the rule of a code in constant time. */
export function indexRules(rules: readonly CodeRule[]): ReadonlyMap<string, CodeRule> {
  return new Map(rules.flatMap((rule) => rule.codes.map((code) => [code, rule] as const)))
}

export function codeRulesAsTable(family: RuleFamily, rules: readonly CodeRule[]): readonly Rule[] {
  return rules.map(({ codes, errorClass, why }) => ({
    family,
    match: codes.join(', '),
    errorClass,
    why,
  }))
}
