/**
 * An abort signal that costs nothing until somebody looks at it: most handlers never do. A class, against the house's
 * custom, because every delivery and every run has one: a getter in an object literal costs about 0.7 µs and 900 bytes
 * a piece, a private field 0.03 µs and 84 bytes (measured on Node 24).
 */
export class LazyAbort {
  #controller: AbortController | undefined
  #aborted = false
  #reason: unknown

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController()
      if (this.#aborted) this.#controller.abort(this.#reason)
    }
    return this.#controller.signal
  }

  get reason(): unknown {
    return this.#reason
  }

  get aborted(): boolean {
    return this.#aborted
  }

  /** The first reason stays. */
  abort(reason?: unknown): void {
    if (this.#aborted) return
    this.#aborted = true
    this.#reason = reason
    this.#controller?.abort(reason)
  }
}
