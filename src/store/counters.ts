/** Numbers that all workers count on. Whole numbers within ±(2^53 - 1), where they stop; one that nobody has used is 0. */
export interface Counters {
  /**
   * Answers the sum. `keepMs` from the counter's first use on it counts; after that it begins again at 0. The first `add` of
   * a period decides its length.
   */
  add(name: string, delta: number, keepMs: number): Promise<number>
  read(name: string): Promise<number>
}
