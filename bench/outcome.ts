import type { Contender, Figures, Question } from './contender.ts'

/** All answers of one contender to one question. */
export interface Outcome {
  readonly question: Question
  readonly contender: Contender
  readonly figures: readonly Figures[]
  /** Why there are fewer than rounds. */
  readonly failures: readonly string[]
}

export interface Machine {
  readonly cores: number
  readonly memoryGb: number
  readonly platform: string
  readonly node: string
  readonly postgres: string | undefined
  /** Load averages over a minute, before and after: above the number of cores, something else was running. */
  readonly load: readonly [number, number]
}

export interface Results {
  readonly date: string
  readonly machine: Machine
  readonly rounds: number
  readonly messages: number
  readonly outcomes: readonly Outcome[]
}
