import type { Resolved } from './options.ts'

/** What cannot be checked without the management API. */
export const UNSEEN =
  'without `management` no policy is seen, and none is checked: message-ttl, expires, max-length with drop-head, delivery-limit or dead-letter settings that a policy gives a queue may lose messages'

/** What no start can see of this broker, for people; a sentence each. */
export function unseenFacts(options: Resolved, delays: boolean): readonly string[] {
  const { topology, managementUrl, consumerTimeoutMs } = options
  if (topology === 'none') return ['topology: none, so nothing of the queues is checked']
  return [
    ...(managementUrl === undefined ? [`policies: ${UNSEEN}`] : []),
    ...(delays && topology === 'check' ? [`delays: ${UNBOUND}`] : []),
    `consumer timeout: the broker does not tell its own; consumerTimeoutMs says ${consumerTimeoutMs} ms`,
  ]
}

const UNBOUND =
  'their queues and exchanges are compared one by one, and how they are bound to each other is not seen; where a binding is missing, delayed sends answer notFound, or wait at their last hop'
