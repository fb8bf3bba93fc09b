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
    ...(topology === 'check' && managementUrl === undefined ? unboundFacts(options, delays) : []),
    `consumer timeout: the broker does not tell its own; consumerTimeoutMs says ${consumerTimeoutMs} ms`,
  ]
}

/** Without the management API. */
function unboundFacts({ queues }: Resolved, delays: boolean): readonly string[] {
  const hasExchange = Object.values(queues).some(({ exchange = '' }) => exchange !== '')
  return [
    ...(delays ? [`delays: ${UNBOUND}`] : []),
    ...(hasExchange ? [`exchanges: ${UNFED}`] : []),
  ]
}

const UNBOUND =
  'their queues and exchanges are compared one by one, and how they are bound to each other is not seen without `management`; where a binding is missing, delayed sends answer notFound, or wait at their last hop'

const UNFED =
  'whether the exchanges that `queues` names feed their queues is not seen without `management`; where one does not and feeds others, sends are confirmed and never come'
