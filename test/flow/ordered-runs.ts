import assert from 'node:assert/strict'

export interface OrderedCall {
  readonly key: string
  /** From 1, in the order in which those of its key were sent. */
  readonly n: number
}

export interface OrderedRun extends OrderedCall {
  readonly attempt: number
  end: 'running' | 'done' | 'refused'
}

/** What handlers of a queue in order say of themselves, as it happens. */
export interface OrderedRuns {
  readonly runs: readonly OrderedRun[]
  began(call: OrderedCall, attempt: number): OrderedRun
  /** Numbers of a key, as they were done. */
  done(key: string): readonly number[]
  refused(): number
  /** Fails unless each key was done from 1 to `count`, each once, and never two at once or one before its turn. */
  assertInOrder(keys: readonly string[], count: number): void
}

export function orderedRuns(): OrderedRuns {
  const runs: OrderedRun[] = []
  const broken: string[] = []
  const ofKey = (key: string): readonly OrderedRun[] => runs.filter((run) => run.key === key)
  const done = (key: string): readonly number[] =>
    ofKey(key)
      .filter(({ end }) => end === 'done')
      .map(({ n }) => n)
  return {
    runs,
    done,
    began: ({ key, n }, attempt) => {
      const running = ofKey(key).find(({ end }) => end === 'running')
      if (running !== undefined) broken.push(`${key} ${n} began while ${running.n} ran`)
      if (n !== done(key).length + 1) broken.push(`${key} ${n} began after ${done(key)}`)
      const run: OrderedRun = { key, n, attempt, end: 'running' }
      runs.push(run)
      return run
    },
    refused: () => runs.filter(({ end }) => end === 'refused').length,
    assertInOrder: (keys, count) => {
      assert.deepEqual(broken, [])
      const all = Array.from({ length: count }, (_, at) => at + 1)
      for (const key of keys) assert.deepEqual(done(key), all, key)
    },
  }
}
