/** What a handler set going through its context and may not have awaited: its run has not ended before that has. */
export interface LooseEnds {
  /**
   * The same promise, with two differences: nobody needs to look at it, and it is known whether somebody did.
   * `decides`: the message depends on it, so what became of it counts even when the handler had turned to other things.
   */
  follow<T>(work: Promise<T>, options: { readonly decides: boolean }): Promise<T>
  /** Waits for what is open, and answers the first failure that the handler cannot have known when it returned. */
  tied(): Promise<{ readonly error: unknown } | undefined>
}

interface End {
  readonly work: Promise<unknown>
  readonly promise: Watched<unknown>
  readonly decides: boolean
  isOpen: boolean
  /** Open when the handler returned. */
  isLate: boolean
  failure: { readonly error: unknown } | undefined
}

export function looseEnds(): LooseEnds {
  const ends = new Set<End>()

  const follow = <T>(work: Promise<T>, { decides }: { readonly decides: boolean }): Promise<T> => {
    const promise = new Watched<T>((resolve, reject) => {
      work.then(resolve, reject)
    })
    const end: End = { work, promise, decides, isOpen: true, isLate: false, failure: undefined }
    ends.add(end)
    work.then(
      () => void ends.delete(end),
      (error: unknown) => {
        end.isOpen = false
        end.failure = { error }
      },
    )
    // Counts as handled, without counting as seen: an unhandled rejection would end the process.
    Promise.prototype.then.call(promise, undefined, () => undefined)
    return promise
  }

  const tied: LooseEnds['tied'] = async () => {
    for (let open = openOf(ends); open.length > 0; open = openOf(ends)) {
      for (const end of open) end.isLate = true
      await Promise.allSettled(open.map((end) => end.work))
    }
    return [...ends].find(isUnknown)?.failure
  }

  return { follow, tied }
}

function openOf(ends: ReadonlySet<End>): readonly End[] {
  return [...ends].filter((end) => end.isOpen)
}

function isUnknown({ failure, promise, isLate, decides }: End): boolean {
  return failure !== undefined && (!promise.isSeen || (isLate && decides))
}

/** `await`, `then`, `catch` and `finally` all call `then` of a subclass; of a plain promise `await` does not. */
class Watched<T> extends Promise<T> {
  isSeen = false

  static override get [Symbol.species](): PromiseConstructor {
    return Promise
  }

  // biome-ignore lint/suspicious/noThenProperty: a promise has one
  override then<A = T, B = never>(
    onFulfilled?: ((value: T) => A | PromiseLike<A>) | null,
    onRejected?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    this.isSeen = true
    return super.then(onFulfilled, onRejected)
  }
}
