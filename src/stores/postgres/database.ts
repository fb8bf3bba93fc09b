import type { Row } from '../../sql/executor.ts'
import { allInSchema } from '../../sql/pg-name.ts'
import * as statements from './statements.ts'

export type Statements = typeof statements

export function statementsIn(schema: string): Statements {
  return allInSchema({ ...statements }, schema)
}

/** One connection of the store: every act is one statement, a transaction by itself. */
export interface Database {
  readonly sql: Statements
  readonly query: (sql: string, params: readonly unknown[]) => Promise<readonly Row[]>
}

/** Moments are stored whole in ms; a double in seconds comes back a little beside. */
export function momentOf(value: unknown): number {
  return Math.round(Number(value))
}
