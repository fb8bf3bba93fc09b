import type { AttemptHistory } from '../../model/history.ts'
import { read, readInteger, readString } from '../../model/probe.ts'
import { answeredFault } from './faults.ts'
import { historyOf, historyText } from './history.ts'
import type { QueueNames } from './names.ts'
import { readAnswer, type Store } from './store.ts'
import { parsed } from './wire.ts'

/**
 * What is written beside a message before it goes back, under its sequence. A message that succeeds at once has none, so only
 * failing ones pay.
 */
export interface Written {
  /** Sequences begin again in a stream that was made anew; what has another id is of the one before. */
  readonly id: string
  readonly seq: number
  /** The last handing out whose end is known. */
  readonly deliveries: number
  readonly history: AttemptHistory
  readonly alone: boolean
}

export async function writeAttempts(
  store: Store,
  names: QueueNames,
  { history, ...written }: Written,
): Promise<void> {
  const { timeoutMs, server } = store
  const text = `{"history":${historyText(history, server.maxPayload - MARGIN)},${JSON.stringify(written).slice(1)}`
  const answer = readAnswer(
    await store.request(names.attempts(written.seq), text, { timeout: timeoutMs }),
  )
  if (answer.error !== undefined)
    throw new Error('attempts could not be written', { cause: answeredFault(answer.error).cause })
}

const MARGIN = 4_096

/** Undefined when nothing was written for this very message. */
export async function readAttempts(
  { client, tracked }: Store,
  names: QueueNames,
  { id, seq }: Pick<Written, 'id' | 'seq'>,
): Promise<Written | undefined> {
  const last_by_subj = names.attempts(seq)
  const stored = await tracked(client.manager.streams.getMessage(names.shelf, { last_by_subj }))
  if (stored === null) return undefined
  const value = parsed(stored.string())
  const history = historyOf(read(value, 'history'))
  if (readString(value, 'id') !== id || readInteger(value, 'seq') !== seq) return undefined
  if (history === undefined) return undefined
  const deliveries = readInteger(value, 'deliveries') ?? 0
  return { id, seq, deliveries, history, alone: read(value, 'alone') === true }
}

/** After the message has ended. What is left behind by a crash in between is never read again. */
export async function forgetAttempts(store: Store, names: QueueNames, seq: number): Promise<void> {
  await store.client.manager.streams.purge(names.shelf, { filter: names.attempts(seq) })
}
