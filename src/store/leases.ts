/** Who alone may do something, for a while. The fence grows with every new holder of a name, also after it was free. */
export interface Leases {
  /**
   * Undefined when another holder has it. Who holds it already gets it again, with the same fence and a new end; whose lease
   * has ended is a new holder.
   */
  acquire(name: string, holder: string, leaseMs: number): Promise<Lease | undefined>
  /** False when it is no longer this one's: another holder, or its end has passed. */
  renew(name: string, lease: Lease, leaseMs: number): Promise<boolean>
  /** Harmless when it is no longer this one's. */
  release(name: string, lease: Lease): Promise<void>
}

export interface Lease {
  readonly holder: string
  readonly fence: bigint
}
