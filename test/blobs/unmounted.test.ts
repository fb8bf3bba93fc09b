import assert from 'node:assert/strict'
import { mkdir, mkdtemp, rename, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { createMillrace, defineQueue, silentLogger } from 'millrace'
import { fileBlobs } from 'millrace/blobs'
import { sqlite } from 'millrace/sqlite'
import { z } from 'zod'
import { until } from '../transports/until.ts'

const reports = defineQueue({ name: 'reports', owner: 'team-reports', payload: z.string() })
const LARGE = 'x'.repeat(5_000)

for (const [what, within] of [
  ['the folder itself is mounted', ''],
  ['the folder lies in what is mounted', 'blobs'],
] as const) {
  test(`large messages wait while a disk is not mounted, and none is sent there: ${what}`, async (t) => {
    const root = await mkdtemp(join(tmpdir(), 'millrace-unmounted-'))
    t.after(() => rm(root, { recursive: true, force: true }))
    const mount = join(root, 'mount')
    const app = async () => {
      const blobs = fileBlobs({ folder: join(mount, within) })
      const transport = sqlite({ file: join(root, 'queue.db') })
      const claimCheck = { blobs, aboveBytes: 1_000 }
      const opened = await createMillrace({
        ...{ transport, queues: [reports], claimCheck, logger: silentLogger },
      })
      t.after(() => opened.close({ timeoutMs: 1_000 }))
      return opened
    }
    const [sender, worker] = [await app(), await app()]
    await sender.sendBatch(
      reports,
      [1, 2, 3].map((n) => `${n}${LARGE}`),
    )
    await rename(mount, join(root, 'away'))
    await mkdir(mount)

    const handled: string[] = []
    worker.work(reports, ({ payload }) => void handled.push(payload.slice(0, 1)))
    await worker.start()
    await until('health to name it', async () => {
      const { reasons } = await worker.health()
      return reasons.some((one) => one.includes('is its disk mounted?'))
    })
    await assert.rejects(sender.send(reports, `4${LARGE}`), { code: 'MILLRACE_UNAVAILABLE' })
    const { dead } = await worker.admin.stats(reports)
    assert.deepEqual([dead, handled], [0, []])

    await rm(mount, { recursive: true })
    await rename(join(root, 'away'), mount)
    await until('all are handled', () => handled.length === 3, 60_000)
    assert.deepEqual(handled.toSorted(), ['1', '2', '3'])
    await sender.send(reports, `5${LARGE}`)
    await until('one that was sent later', () => handled.includes('5'))
  })
}
