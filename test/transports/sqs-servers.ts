import { backendUrl } from '../backends.ts'

/** A stand-in for SQS. Both are right on most things, and wrong on different ones; see the README of the transport. */
export interface SqsServer {
  readonly name: string
  readonly url: string
}

export function sqsServers(): readonly SqsServer[] {
  const elasticmq = backendUrl('sqs elasticmq')
  const fauxqs = backendUrl('sqs fauxqs')
  return [
    ...(elasticmq ? [{ name: 'elasticmq', url: elasticmq }] : []),
    ...(fauxqs ? [{ name: 'fauxqs', url: fauxqs }] : []),
  ]
}
