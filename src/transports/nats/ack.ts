import type { Held } from './held.ts'
import type { Store } from './store.ts'

/** What can be said about a message that was handed out. */
export type AckWord = '+ACK' | '-NAK' | '+WPI' | `-NAK {"delay":${number}}`

/** Says it and waits until the server has confirmed. @throws when it did not, in time */
export async function answeredBy(
  { request, timeoutMs }: Store,
  { reply }: Pick<Held, 'reply'>,
  word: AckWord,
): Promise<void> {
  await request(reply, word, { timeout: timeoutMs })
}
