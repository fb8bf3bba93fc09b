/** What became of one promise on one backend. `conformance({ onResult })` hands these out. */
export interface Result {
  readonly backend: string
  readonly family: string
  readonly title: string
  readonly outcome: 'kept' | 'broken' | 'deviates'
  /** Of a known deviation. */
  readonly reason?: string
}
