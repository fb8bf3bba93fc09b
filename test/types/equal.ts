/** True only when both types are the same, optional and readonly included. */
export type Equal<A, B> =
  (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false

/** Fails to compile unless its type argument is true. */
export function same<_Same extends true>(): void {}
