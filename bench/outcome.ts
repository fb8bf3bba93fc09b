import type { Contender, Figures, Question } from './contender.ts'

/** When and how a question was asked. */
export interface Asking {
  readonly date: string
  readonly rounds: number
  /** Of which the question takes its share. */
  readonly messages: number
  /** Load averages over a minute, before and after: above the number of cores, something else was running. */
  readonly load: readonly [number, number]
}

/** All answers of one contender to one question. */
export interface Outcome {
  readonly question: Question
  readonly contender: Contender
  readonly asking: Asking
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
}

export interface Results {
  readonly date: string
  readonly machine: Machine
  readonly outcomes: readonly Outcome[]
}
