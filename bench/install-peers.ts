import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

const FOLDER = join(import.meta.dirname, 'peers')
const ARGUMENTS = ['ci', '--prefix', FOLDER, '--no-audit', '--no-fund']
const TRIES = 3

/** The other queues are installed when they are first needed, never by users. */
export async function installPeers(): Promise<void> {
  // The one that was added last: without it the folder is of an older version.
  if (existsSync(join(FOLDER, 'node_modules', 'bee-queue'))) return
  for (let tried = 1; tried <= TRIES; tried += 1) {
    if (await succeeds('npm', ARGUMENTS)) return
    if (tried < TRIES) await sleep(tried * 2_000)
  }
  throw new Error(`installing the other queues failed ${TRIES} times: npm ${ARGUMENTS.join(' ')}`)
}

async function succeeds(command: string, args: readonly string[]): Promise<boolean> {
  const child = spawn(command, args, { stdio: ['ignore', 'inherit', 'inherit'] })
  const [code] = await once(child, 'exit')
  return code === 0
}
