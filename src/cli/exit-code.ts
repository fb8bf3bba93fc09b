/** The same for every command; scripts depend on them. */
export const DONE: 0 = 0
export const FAILED: 1 = 1
export const WRONG_USE: 2 = 2

export type ExitCode = typeof DONE | typeof FAILED | typeof WRONG_USE
