import type { StreamConfig } from '@nats-io/jetstream'
import { lanesIn, sourcesOf } from './lane.ts'
import type { QueueNames } from './names.ts'
import { takes } from './subjects.ts'

/**
 * Whether a stream has the lanes that its queue wants, in one sentence at most. The number cannot change while messages are there:
 * a key would be in two lanes at once.
 */
export function laneDifferences(
  names: QueueNames,
  { subjects }: Pick<StreamConfig, 'subjects'>,
  wanted: number,
): readonly string[] {
  const { queue, stream } = names
  const say = (text: string): readonly string[] => [`stream ${stream} of queue "${queue}" ${text}`]
  const there = lanesIn(names, subjects)
  if (there === wanted) {
    const missing = sourcesOf(names, wanted).filter(({ subject }) => !takes(subjects, subject))
    const lacking = missing.map(({ subject }) => subject)
    if (lacking.length === 0) return []
    return say(`has ${wanted} lanes without all of their subjects; add ${lacking.join(', ')}`)
  }
  if (there === 0) {
    return say(`has no lanes, and the queue has an orderingKey; ${ANEW}`)
  }
  return say(
    `has ${there} lanes, and lanes is ${wanted} here, so that keys would change their lane; pass lanes: ${there}, or ${ANEW}`,
  )
}

/** A stream that is removed takes its messages with it, hence the first half. */
const ANEW =
  'let the queue become empty, stop its apps and remove the stream: the next start makes it anew'
