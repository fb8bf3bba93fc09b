import { after, describe, test } from 'node:test'
import { atHome } from './depth.ts'

/** What a kit registers its tests with. */
export type Register = (title: string, keep: () => Promise<void>) => void

/** A kit on one backend, and how much of it goes on at once. */
export interface Kit {
  readonly name: string
  /**
   * Most of a kit waits for leases and delays; its tests use a queue of their own each and may wait together. One where
   * they share what they look at.
   */
  readonly atOnce: number
  /** At home it is left out, and the summary says so: another one shows the same code with the same server. */
  readonly leftToFull?: boolean
  /** Registers its tests with `test`: `conformance` or `storeConformance`. */
  readonly register: (test: Register) => Promise<void>
  readonly dispose: () => Promise<void>
}

interface Promised {
  readonly title: string
  readonly keep: () => Promise<void>
}

/**
 * Runs kits, `sideBySide` of them at a time. About six tests at once is what one process can do without being late itself: leases
 * and windows of the kit are half a second.
 */
export async function runKits(kits: readonly Kit[], sideBySide: number): Promise<void> {
  const promises = new Map<Kit, Promised[]>()
  for (const kit of kits) {
    if (kit.leftToFull && atHome) {
      test(kit.name, { skip: `left out at home: ${kit.name}; with MILLRACE_DEPTH=full` }, () => {})
      // What its harness has opened would keep the process.
      await kit.dispose()
      continue
    }
    const own: Promised[] = []
    await kit.register((title, keep) => void own.push({ title, keep }))
    promises.set(kit, own)
  }
  if (promises.size === 0) return
  describe('kits', { concurrency: sideBySide }, () => {
    for (const [{ name, atOnce, dispose }, own] of promises) {
      describe(name, { concurrency: atOnce }, () => {
        after(dispose)
        for (const { title, keep } of own) test(title, keep)
      })
    }
  })
}
