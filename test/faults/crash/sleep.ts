import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { type BackendSpec, openStand } from './backend.ts'
import { recorded } from './recorder.ts'

const DEADLINE_MS = 60_000

/**
 * A worker is stopped with a message in its hands, past its lease; another one handles the message meanwhile. Woken up,
 * the first one must not commit its effect, and must be told why.
 */
export async function runSleeper(spec: BackendSpec, folder: string): Promise<void> {
  const recordFile = join(folder, 'sleeper.ndjson')
  const stand = await openStand(spec)
  const sleeper = start(spec, recordFile)
  try {
    await stand.app.send(stand.victims, { key: 'tx-sleeper' })
    await until(() => recorded(recordFile).some((event) => event.what === 'stopped'))
    // The second holder has not committed yet when the first one wakes up, so it is the fence that must refuse it.
    stand.app.work(stand.victims, async (message, ctx) => {
      const { key } = message.payload
      if (key === 'tx-sleeper') {
        sleeper.kill('SIGCONT')
        await until(() => recorded(recordFile).some((event) => event.what === 'refused'))
      }
      await ctx.tx((tx) => {
        const written = stand.effect(tx, key)
        return written instanceof Promise ? written.then(() => undefined) : undefined
      })
    })
    const stoppedAt = Date.now()
    await stand.app.start()
    await stand.app.send(stand.victims, { key: 'tx-neighbour' })
    await until(async () => (await stand.effects()).get('tx-neighbour') === 1)
    const neighbourMs = Date.now() - stoppedAt
    assert.ok(neighbourMs < 4_000, `the neighbour waited ${neighbourMs} ms for a stopped process`)
    await until(async () => (await stand.effects()).get('tx-sleeper') === 1)
    const refused = recorded(recordFile).filter((event) => event.what === 'refused')
    assert.equal(refused.length, 1)
    // Whichever it notices first: that its time is over, or that its fence no longer matches.
    const reasons = ['MILLRACE_LEASE_LOST', 'MILLRACE_HANDLER_TIMEOUT']
    for (const event of refused) assert.ok(event.what === 'refused' && reasons.includes(event.code))
    assert.deepEqual(
      [...(await stand.effects())].sort(),
      [
        ['tx-neighbour', 1],
        ['tx-sleeper', 1],
      ],
      'one effect each',
    )
  } finally {
    sleeper.kill('SIGKILL')
    await stand.close()
  }
}

function start(spec: BackendSpec, recordFile: string): ChildProcess {
  const child = spawn(
    process.execPath,
    [
      '--conditions=millrace-source',
      '--disable-warning=ExperimentalWarning',
      fileURLToPath(new URL('sleeper.ts', import.meta.url)),
      JSON.stringify(spec),
      recordFile,
    ],
    { stdio: ['ignore', 'inherit', 'inherit'] },
  )
  void once(child, 'exit')
  return child
}

async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = Date.now() + DEADLINE_MS
  while (!(await condition())) {
    if (Date.now() > deadline) assert.fail(`not within ${DEADLINE_MS} ms: ${condition}`)
    await wait(50)
  }
}
