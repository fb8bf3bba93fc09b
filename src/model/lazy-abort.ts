/** An abort signal that costs nothing until somebody looks at it: most handlers never do. */
export interface LazyAbort {
  readonly signal: AbortSignal
  readonly reason: unknown
  readonly aborted: boolean
  /** The first reason stays. */
  abort(reason: unknown): void
}

export function lazyAbort(): LazyAbort {
  let controller: AbortController | undefined
  let aborted = false
  let reason: unknown
  return {
    get signal() {
      if (controller === undefined) {
        controller = new AbortController()
        if (aborted) controller.abort(reason)
      }
      return controller.signal
    },
    get reason() {
      return reason
    },
    get aborted() {
      return aborted
    },
    abort: (why) => {
      if (aborted) return
      aborted = true
      reason = why
      controller?.abort(why)
    },
  }
}
