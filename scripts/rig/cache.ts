import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

const TRIES = 3

/** Where what takes long to fetch or build is kept between runs; `MILLRACE_RIG_CACHE` names another place. */
export function cacheFolder(): string {
  const { MILLRACE_RIG_CACHE: named, XDG_CACHE_HOME: users } = process.env
  return named ?? join(users ?? join(homedir(), '.cache'), 'millrace-rig')
}

/** The folder `name` in the cache. `fill` makes it, somewhere else first, so that a half filled one is never seen. */
export async function cached(
  name: string,
  fill: (folder: string) => Promise<unknown>,
): Promise<string> {
  const folder = join(cacheFolder(), name)
  if (existsSync(folder)) return folder
  mkdirSync(cacheFolder(), { recursive: true })
  const made = mkdtempSync(join(cacheFolder(), `.${name}-`))
  try {
    await thrice(() => fill(made))
    moveUnlessThere(made, folder)
  } finally {
    rmSync(made, { recursive: true, force: true })
  }
  return folder
}

/** Registries fail at times. */
export async function thrice(install: () => Promise<unknown>): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      await install()
      return
    } catch (error) {
      if (attempt === TRIES) throw error
      await sleep(2_000 * attempt)
    }
  }
}

/** Another run may have been faster; its folder is as good. */
function moveUnlessThere(made: string, folder: string): void {
  try {
    renameSync(made, folder)
  } catch (error) {
    if (!existsSync(folder)) throw error
  }
}
