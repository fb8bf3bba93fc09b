import type { Traits } from '../transport/traits.ts'
import type { Transport } from '../transport/transport.ts'
import type { Harness } from './harness.ts'
import type { Scope } from './scope.ts'

/** One thing that a transport (or a store) must do, and how to see that it does. */
export interface Promised<S = Scope, About = Subject> {
  /** A full sentence, unique within the kit. */
  readonly title: string
  /**
   * Absent: asked of all. Chosen by traits and optional members only, never by a
   * backend's name.
   */
  readonly when?: (subject: About) => boolean
  readonly keep: (scope: S) => Promise<void>
}

export interface Family<S = Scope, About = Subject> {
  readonly name: string
  readonly promises: readonly Promised<S, About>[]
}

/** What the kit knows of a transport before the first test. */
export interface Subject {
  readonly traits: Traits
  /** A live connection, only to look at its optional members. */
  readonly transport: Transport
  readonly harness: Harness
}
