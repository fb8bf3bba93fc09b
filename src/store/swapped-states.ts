/** Small states that many change: read, decide, and swap if nobody was faster. */
export interface SwappedStates {
  read(name: string): Promise<VersionedState | undefined>
  /**
   * Writes if the state still has `version` (undefined: does not exist). Answers the new version; undefined when somebody was
   * faster. Versions of a name only grow.
   */
  swap(name: string, version: bigint | undefined, value: string): Promise<bigint | undefined>
}

export interface VersionedState {
  readonly value: string
  readonly version: bigint
}
