import type { AttemptHistory } from '../../model/history.ts'
import { read, readInteger, readString } from '../../model/probe.ts'
import { answeredFault, isOvertaken } from './faults.ts'
import { historyOf, historyText } from './history.ts'
import type { QueueNames } from './names.ts'
import { type Answer, readAnswer, type Store } from './store.ts'
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

/** What lies under the sequence of a message. */
export interface LastWritten {
  /** Its own sequence, in the shelf's stream; 0 when nothing lies there. */
  readonly at: number
  /** Undefined when nothing was written for this very message. */
  readonly written: Written | undefined
}

export const NOTHING_WRITTEN: LastWritten = { at: 0, written: undefined }

/**
 * Answers where it lies now. Undefined when somebody who had the message later has written: a process that was stopped says late what
 * it had begun to say, and his handing out would count as one that never ended.
 * @param after where what its holder knows of lies
 */
export async function writeAttempts(
  store: Store,
  names: QueueNames,
  written: Written,
  after: number,
): Promise<number | undefined> {
  for (let last = after; ; ) {
    const { seq = 0, error } = await write(store, names, written, last)
    if (error === undefined) return seq
    if (!isOvertaken(error)) throw unwritten(error)
    const found = await readAttempts(store, names, written)
    if ((found.written?.deliveries ?? 0) > written.deliveries) return undefined
    if (found.at === last) throw unwritten(error)
    // What we wrote before and heard no answer, or the word of somebody who had it earlier.
    last = found.at
  }
}

function unwritten(error: NonNullable<Answer['error']>): Error {
  return new Error('attempts could not be written', { cause: answeredFault(error).cause })
}

async function write(
  { request, client, timeoutMs, server }: Store,
  names: QueueNames,
  { history, ...written }: Written,
  after: number,
): Promise<Answer> {
  const text = `{"history":${historyText(history, server.maxPayload - MARGIN)},${JSON.stringify(written).slice(1)}`
  const headers = client.headers({ 'Nats-Expected-Last-Subject-Sequence': String(after) })
  return readAnswer(
    await request(names.attempts(written.seq), text, { headers, timeout: timeoutMs }),
  )
}

const MARGIN = 4_096

export async function readAttempts(
  { client, tracked }: Store,
  names: QueueNames,
  { id, seq }: Pick<Written, 'id' | 'seq'>,
): Promise<LastWritten> {
  const last_by_subj = names.attempts(seq)
  const stored = await tracked(client.manager.streams.getMessage(names.shelf, { last_by_subj }))
  if (stored === null) return NOTHING_WRITTEN
  const at = stored.seq
  const value = parsed(stored.string())
  const history = historyOf(read(value, 'history'))
  if (
    readString(value, 'id') !== id ||
    readInteger(value, 'seq') !== seq ||
    history === undefined
  ) {
    return { at, written: undefined }
  }
  const deliveries = readInteger(value, 'deliveries') ?? 0
  return { at, written: { id, seq, deliveries, history, alone: read(value, 'alone') === true } }
}

/** After the message has ended. What is left behind by a crash in between is never read again. */
export async function forgetAttempts(store: Store, names: QueueNames, seq: number): Promise<void> {
  await store.client.manager.streams.purge(names.shelf, { filter: names.attempts(seq) })
}
