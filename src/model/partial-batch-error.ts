import { MillraceError } from './errors.ts'

/** A batch to a backend that stores one message at a time: some were stored, some were not. */
export class PartialBatchError extends MillraceError {
  /** In the order of the payloads: what `send` would have answered, or thrown. Send again only what failed. */
  readonly results: readonly BatchResult[]
  constructor(queue: string, backend: string, results: readonly BatchResult[]) {
    const failed = results.flatMap((result, i) => ('error' in result ? [i] : []))
    const [first = 0] = failed
    const found = results[first]
    const why = found !== undefined && 'error' in found ? found.error.message : ''
    super(
      'MILLRACE_BATCH_PARTIAL',
      `queue "${queue}": ${results.length - failed.length} of ${results.length} messages were stored, because ${backend} has no batches that ` +
        `are all or nothing; payload ${first}: ${why}; send again what has an error in \`results\``,
      { retryable: failed.every((i) => isRetryable(results[i])), fields: { queue, failed } },
    )
    this.results = results
  }
}

export type BatchResult =
  | { readonly id: string; readonly duplicate: boolean }
  | { readonly error: MillraceError }

function isRetryable(result: BatchResult | undefined): boolean {
  return result !== undefined && 'error' in result && result.error.retryable
}
