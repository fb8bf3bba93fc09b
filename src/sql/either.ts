/**
 * What is wrong with two options of which one must be given; undefined when nothing is. An option that is there and
 * undefined is most often an environment variable that nobody set.
 */
export function eitherProblem(given: object, one: string, other: string): string | undefined {
  const options = given as Readonly<Record<string, unknown>>
  const present = [one, other].filter((name) => options[name] !== undefined)
  if (present.length === 1) return undefined
  const expected = `expected either ${one} or ${other}`
  if (present.length === 2) return `${expected}, got both`
  const unset = [one, other].filter((name) => name in options)
  if (unset.length === 0) return `${expected}, got neither`
  return `${expected}, got ${unset.join(': undefined, ')}: undefined; is the environment variable set?`
}
