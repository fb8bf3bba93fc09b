import { UsageError } from './usage-error.ts'

/** @throws UsageError when it is no whole number within the bounds. */
export function wholeNumber(
  option: string,
  text: string | undefined,
  { min, max }: { readonly min: number; readonly max: number },
): number | undefined {
  if (text === undefined) return undefined
  const n = Number(text)
  if (/^\d{1,15}$/.test(text) && n >= min && n <= max) return n
  throw new UsageError(
    `${option}: expected a whole number from ${min} to ${max}, got ${JSON.stringify(text)}`,
  )
}
