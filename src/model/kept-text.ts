/** Whether every database and every broker keeps the text as it is: some take no NUL, and none a half character (a lone surrogate). */
export function isKept(text: string): boolean {
  return !text.includes('\0') && text.isWellFormed()
}

/** What a payload, a person or a sender may name something by, in characters. */
export const NAME_MAX: number = 255

/** A name or key that stores take: the one rule for those who make them up and those who keep them. */
export function isName(value: unknown, max: number = NAME_MAX): value is string {
  return typeof value === 'string' && value.length > 0 && value.length <= max && isKept(value)
}

/** How a refusal says what `isName` wants. */
export const NAME_RULE: string = `a text of 1 to ${NAME_MAX} characters, none of them NUL or half of a surrogate pair`
