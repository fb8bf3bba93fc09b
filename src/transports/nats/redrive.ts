import { afterRedrive } from '../../model/history.ts'
import type { AuditEntry, AuditNote } from '../../transport/transport.ts'
import { answeredFault, isBeingStored } from './faults.ts'
import { historyText } from './history.ts'
import { lanesIn } from './lane.ts'
import { HISTORY_MAX, headersWithRoom, letterOf, type Stored, storedLetter } from './letter.ts'
import type { QueueNames } from './names.ts'
import { subjectOf } from './send.ts'
import { lanesFor, readAnswer, type Store } from './store.ts'
import { HISTORY } from './wire.ts'

export interface Act extends AuditNote {
  readonly act: AuditEntry['act']
}

/** Where letters go back to. */
interface Place {
  readonly names: QueueNames
  readonly lanes: number | undefined
}

/** How many letters move side by side. */
const AT_ONCE = 32

/** Answers the ids that were there and that nobody else moved at the same time. */
export async function moveAll(
  store: Store,
  names: QueueNames,
  ids: readonly string[],
  act: Act,
): Promise<readonly string[]> {
  const moved: string[] = []
  const all = [...new Set(ids)]
  const lanes = lanesFor(store, names.queue) && (await lanesThere(store, names))
  for (let at = 0; at < all.length; at += AT_ONCE) {
    const part = all.slice(at, at + AT_ONCE)
    const outcomes = await Promise.all(part.map((id) => move(store, { names, lanes }, id, act)))
    moved.push(...part.filter((_, index) => outcomes[index]))
  }
  return moved
}

/**
 * Sent, written to the audit, then removed. When it is killed in between, the letter is still there and may be moved again:
 * twice is possible, never is not. Within the duplicate window the server drops the second.
 */
async function move(store: Store, place: Place, id: string, act: Act): Promise<boolean> {
  const { names } = place
  const stored = await storedLetter(store, names, id)
  if (stored === undefined) return false
  if (act.act === 'redrive' && !(await sendAgain(store, place, stored))) return false
  const { reason, actor } = act
  const entry = JSON.stringify({ act: act.act, messageId: id, actor, reason })
  await confirmed(store, names.audit(act.act, stored.seq), entry, {})
  return await removed(store, names, stored.seq)
}

async function lanesThere({ client }: Store, names: QueueNames): Promise<number> {
  return lanesIn(names, (await client.manager.streams.info(names.stream)).config.subjects)
}

/** False when somebody else is just doing it. */
async function sendAgain(store: Store, { names, lanes }: Place, stored: Stored): Promise<boolean> {
  const { envelope, history, sentAt } = letterOf(names, stored)
  const { base, roomBytes } = headersWithRoom(store, names, envelope, sentAt)
  return await confirmed(store, subjectOf(names, envelope, lanes), envelope.body, {
    ...base,
    [HISTORY]: historyText(afterRedrive(history), Math.min(HISTORY_MAX, roomBytes)),
    'Nats-Msg-Id': `${envelope.id} redriven ${stored.seq}`,
  })
}

async function confirmed(
  { client, request, timeoutMs }: Store,
  subject: string,
  body: Uint8Array | string,
  fields: Readonly<Record<string, string>>,
): Promise<boolean> {
  const headers = client.headers(fields)
  const { error } = readAnswer(await request(subject, body, { headers, timeout: timeoutMs }))
  if (error === undefined) return true
  if (isBeingStored(error)) return false
  throw new Error(`${subject} took nothing: ${error.description ?? error.code}`, {
    cause: answeredFault(error).cause,
  })
}

/** False when somebody else removed it first. */
async function removed({ client }: Store, { shelf }: QueueNames, seq: number): Promise<boolean> {
  try {
    return await client.manager.streams.deleteMessage(shelf, seq, false)
  } catch (error) {
    if (isGone(error)) return false
    throw error
  }
}

/** 10057: the server's words for a sequence that is not there (any more). */
function isGone(error: unknown): boolean {
  return (
    error instanceof Error &&
    'code' in error &&
    (error.code === 10057 || error.code === 10043 || error.code === 10037)
  )
}
