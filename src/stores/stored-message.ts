import type { DeadLetter } from '../model/dead-letter.ts'
import type { Envelope } from '../model/envelope.ts'
import type { AttemptHistory } from '../model/history.ts'

/** All of an envelope but id and body, as text that every database takes: JSON escapes NUL and half characters. */
export function envelopeText(envelope: Envelope): string {
  const { headers, priority, idempotencyKey, orderingKey } = envelope
  return JSON.stringify({ headers, priority, idempotencyKey, orderingKey })
}

export function envelopeFrom(id: string, text: string, body: unknown): Envelope {
  const rest: Pick<Envelope, 'headers' | 'priority'> = JSON.parse(text)
  return { id, body: body instanceof Uint8Array ? body : noBytes, ...rest }
}

const noBytes = new Uint8Array(0)

/** What of a dead letter has no column of its own. */
type LetterRest = Pick<DeadLetter, 'owner' | 'reason' | 'history' | 'sentAt'>

export function letterText({ owner, reason, history, sentAt }: LetterRest): string {
  return JSON.stringify({ owner, reason, history, sentAt } satisfies LetterRest)
}

export function letterFrom(text: string): LetterRest {
  const { history, ...rest }: LetterRest = JSON.parse(text)
  return { ...rest, history: wholeHistory(history) }
}

export function historyFrom(text: string): AttemptHistory {
  return wholeHistory(JSON.parse(text))
}

/** JSON leaves `undefined` out; a history has the member all the same. */
function wholeHistory(history: AttemptHistory): AttemptHistory {
  return { ...history, throttledSince: history.throttledSince }
}
