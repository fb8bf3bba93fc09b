import { setTimeout as sleep } from 'node:timers/promises'
import { atHome } from '../depth.ts'

/** From here on a deadline says nothing of the product: it only ends a test that has failed. A shorter one is what a test asserts. */
const PATIENCE_FROM_MS = 20_000
/** Of the whole run, which has a machine do everything at once: it was seen to stand for half a minute. */
const PATIENCE = atHome ? 1 : 3

/** Looks again and again until it is true; fails after the deadline, saying what it waited for. */
export async function until(
  what: string,
  look: () => Promise<boolean> | boolean,
  deadlineMs = PATIENCE_FROM_MS,
): Promise<void> {
  const limitMs = deadlineMs < PATIENCE_FROM_MS ? deadlineMs : deadlineMs * PATIENCE
  const endAt = Date.now() + limitMs
  while (!(await look())) {
    if (Date.now() > endAt) throw new Error(`waited ${limitMs} ms for: ${what}`)
    await sleep(5)
  }
}
