import type { Envelope } from './envelope.ts'
import type { AttemptHistory, ErrorClass } from './history.ts'

/** A message that will not be tried again, kept until a person redrives or discards it. */
export interface DeadLetter {
  readonly envelope: Envelope
  readonly queue: string
  readonly owner: string
  readonly errorClass: ErrorClass
  readonly reason: string
  readonly history: AttemptHistory
  /** Epoch ms. */
  readonly sentAt: number
  /** Epoch ms. */
  readonly deadAt: number
}
