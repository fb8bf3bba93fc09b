import type { StandardSchemaV1 } from '@standard-schema/spec'
import type { PayloadIssue } from '../model/errors.ts'
import { chain, type MaybePromise } from '../model/maybe-promise.ts'
import { pathText } from './path.ts'

export type Validated<Out> =
  | { readonly value: Out }
  /** Never empty; at most `ISSUES_MAX`. */
  | { readonly issues: readonly PayloadIssue[] }

export const ISSUES_MAX = 50
const MESSAGE_MAX = 500

/** Asks the schema. Synchronous when the schema is. Whatever the schema itself throws is thrown. */
export function validate<Out>(
  schema: StandardSchemaV1<unknown, Out>,
  value: unknown,
): MaybePromise<Validated<Out>> {
  return chain(schema['~standard'].validate(value), normalised)
}

function normalised<Out>(result: StandardSchemaV1.Result<Out>): Validated<Out> {
  if (!result.issues) return { value: result.value }
  const issues = result.issues.slice(0, ISSUES_MAX).map(normalisedIssue)
  // A schema that answers with an empty list has not accepted the value.
  return { issues: issues.length > 0 ? issues : [{ message: 'refused by the schema', path: '' }] }
}

function normalisedIssue(issue: StandardSchemaV1.Issue): PayloadIssue {
  const path = issue.path?.map((step) => stepOf(typeof step === 'object' ? step.key : step)) ?? []
  return {
    message: String(issue.message).slice(0, MESSAGE_MAX).toWellFormed(),
    path: pathText(path),
  }
}

function stepOf(key: PropertyKey): string | number {
  return typeof key === 'symbol' ? String(key) : key
}
