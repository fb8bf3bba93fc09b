import assert from 'node:assert/strict'
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { createMillrace, defineQueue, hasCode } from 'millrace'
import { fileBlobs, memoryBlobs } from 'millrace/blobs'
import { memory } from 'millrace/memory'
import { z } from 'zod'
import { blobPromises } from './promises.ts'

const { signal } = new AbortController()

async function temporaryFolder(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-blobs-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  return folder
}

blobPromises('memoryBlobs', async () => memoryBlobs())
blobPromises('fileBlobs', async (t) => fileBlobs({ folder: await temporaryFolder(t) }))

test('fileBlobs: a folder that is not there is made at the first put, and until then is no blob that is gone', async (t) => {
  const folder = join(await temporaryFolder(t), 'not', 'there')
  const blobs = fileBlobs({ folder })
  assert.deepEqual(await blobs.list({ before: 'z', max: 10 }, signal), [])
  await assert.rejects(async () => blobs.get('0001-a', signal), {
    message: `there is no folder ${folder}`,
  })
  await blobs.put('0001-a', Uint8Array.of(1), signal)
  assert.deepEqual([...((await blobs.get('0001-a', signal)) ?? [])], [1])
  assert.equal(await blobs.get('0001-b', signal), undefined)
})

test('fileBlobs: a file in the place of the folder is refused, also at the start of an app', async (t) => {
  const folder = join(await temporaryFolder(t), 'file')
  await writeFile(folder, '')
  const blobs = fileBlobs({ folder })
  const refused = {
    code: 'MILLRACE_INVALID_OPTIONS',
    message: `fileBlobs: folder: ${folder} is there, but it is not a folder`,
  }
  await assert.rejects(async () => blobs.get('0001-a', signal), refused)
  await assert.rejects(async () => blobs.list({ before: 'z', max: 1 }, signal), refused)
  const queue = defineQueue({ name: 'reports', owner: 'team-reports', payload: z.string() })
  const starting = createMillrace({ transport: memory(), queues: [queue], claimCheck: { blobs } })
  await assert.rejects(starting, { code: 'MILLRACE_INVALID_OPTIONS' })
})

test('fileBlobs: nothing half written stays, and what a crash left is listed and removed', async (t) => {
  const folder = await temporaryFolder(t)
  const blobs = fileBlobs({ folder })
  await blobs.put('00011-a', new Uint8Array(1), signal)
  assert.deepEqual(await readdir(join(folder, '00011')), ['00011-a'])
  await writeFile(join(folder, '00011', '00011-b.part'), 'half')
  assert.equal(await blobs.get('00011-b', signal), undefined)
  const found = await blobs.list({ before: '00012', max: 10 }, signal)
  assert.deepEqual(found, ['00011-a', '00011-b.part'])
  await blobs.remove(found, signal)
  assert.deepEqual(await readdir(join(folder, '00011')), [])
})

test('fileBlobs: a name never leaves the folder', async (t) => {
  const blobs = fileBlobs({ folder: await temporaryFolder(t) })
  for (const name of ['../a', '.', '..', 'a/b', '', 'a'.repeat(201)]) {
    await assert.rejects(async () => blobs.get(name, signal), /cannot be the name of a blob/, name)
  }
})

test('fileBlobs: wrong options are refused', () => {
  const wrong = [{ folder: '' }, { folder: 'a', maxBytes: 0 }, { folder: 'a', maxBytes: 1.5 }]
  for (const options of wrong) {
    assert.throws(
      () => fileBlobs(options),
      (error) => hasCode(error, 'MILLRACE_INVALID_OPTIONS'),
    )
  }
})
