import { readFileSync } from 'node:fs'
import type { Outcome } from './outcome.ts'
import { QUESTIONS } from './questions.ts'

/** What the file keeps of an outcome: of the question, its name. */
type Recorded = Omit<Outcome, 'question'> & { readonly question: string }

/** The last answers, so that a run that asks less than everything takes nothing off the page. */
export function recorded(file: string | undefined): readonly Outcome[] {
  if (file === undefined) return []
  const { outcomes }: { readonly outcomes: readonly Recorded[] } = JSON.parse(
    readFileSync(file, 'utf8'),
  )
  return outcomes.flatMap((outcome) => {
    const question = QUESTIONS.find(({ id }) => id === outcome.question)
    return question === undefined ? [] : [{ ...outcome, question }]
  })
}

/** The new answers, and the old ones of questions that were not asked again, in the order of the page. */
export function together(old: readonly Outcome[], asked: readonly Outcome[]): readonly Outcome[] {
  const again = new Set(asked.map(({ question }) => question))
  const all = [...old.filter(({ question }) => !again.has(question)), ...asked]
  return QUESTIONS.flatMap((question) => all.filter((outcome) => outcome.question === question))
}
