import type { Deviation } from 'millrace/conformance'

/** A stand-in for SQS. Both are right on most things, and wrong on different ones. */
export interface SqsServer {
  readonly name: string
  readonly url: string
  /** Known errors of the stand-in, by the title of the promise; `kind` narrows them to one kind of queue. */
  readonly deviations: readonly (Deviation & { readonly kind?: 'standard' | 'fifo' })[]
}

export const NO_SERVER = 'neither ElasticMQ nor fauxqs runs'

export function sqsServers(): readonly SqsServer[] {
  const { MILLRACE_TEST_SQS_ELASTICMQ_URL: elasticmq, MILLRACE_TEST_SQS_FAUXQS_URL: fauxqs } =
    process.env
  return [
    ...(elasticmq ? [{ name: 'elasticmq', url: elasticmq, deviations: [] }] : []),
    ...(fauxqs ? [{ name: 'fauxqs', url: fauxqs, deviations: [] }] : []),
  ]
}
