/** What this process's workers take out of a queue for good, told so that senders know of the room. */
export interface Departures {
  /** Taken before a settlement begins; without it nobody can tell whether a count of the queue has seen what it took away. */
  mark(): number
  /** So many were acked or died by a settlement that began at `mark`. */
  left(messages: number, mark: number): void
}
