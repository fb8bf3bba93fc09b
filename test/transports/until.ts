import { setTimeout as sleep } from 'node:timers/promises'

/** Looks again and again until it is true; fails after the deadline, saying what it waited for. */
export async function until(
  what: string,
  look: () => Promise<boolean> | boolean,
  deadlineMs = 20_000,
): Promise<void> {
  const endAt = Date.now() + deadlineMs
  while (!(await look())) {
    if (Date.now() > endAt) throw new Error(`waited ${deadlineMs} ms for: ${what}`)
    await sleep(5)
  }
}
