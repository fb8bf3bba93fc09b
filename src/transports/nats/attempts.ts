import type { AttemptHistory } from '../../model/history.ts'
import { read, readInteger, readString } from '../../model/probe.ts'
import { answeredFault } from './faults.ts'
import { historyOf, historyText } from './history.ts'
import type { QueueNames } from './names.ts'
import { readAnswer, type Store } from './store.ts'
import { parsed } from './wire.ts'

/**
 * What is written beside a message before it goes back, under its id. A message that succeeds at once has none, so only
 * failing ones pay.
 */
export interface Written {
  readonly id: string
  /** Of the message; one that was written for another message with this id is not ours. */
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
    await store.request(names.attempts(written.id), text, { timeout: timeoutMs }),
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
  const last_by_subj = names.attempts(id)
  const stored = await tracked(client.manager.streams.getMessage(names.shelf, { last_by_subj }))
  if (stored === null) return undefined
  const value = parsed(stored.string())
  const history = historyOf(read(value, 'history'))
  if (readString(value, 'id') !== id || readInteger(value, 'seq') !== seq) return undefined
  if (history === undefined) return undefined
  const deliveries = readInteger(value, 'deliveries') ?? 0
  return { id, seq, deliveries, history, alone: read(value, 'alone') === true }
}

/** After the message has ended. What is left behind by a crash in between is never read, because no sequence comes twice. */
export async function forgetAttempts(store: Store, names: QueueNames, id: string): Promise<void> {
  await store.client.manager.streams.purge(names.shelf, { filter: names.attempts(id) })
}
