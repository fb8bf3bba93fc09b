import assert from 'node:assert/strict'
import { mkdir, mkdtemp, readdir, rename, rm, writeFile } from 'node:fs/promises'
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
blobPromises('fileBlobs', async (t) => {
  const blobs = fileBlobs({ folder: await temporaryFolder(t) })
  // One that was never used cannot be told from one whose disk is not mounted.
  await blobs.put('0000-first', new Uint8Array(), signal)
  await blobs.remove(['0000-first'], signal)
  return blobs
})

test('fileBlobs: a folder that is not there is made at the first put, and until then is no blob that is gone', async (t) => {
  const folder = join(await temporaryFolder(t), 'not', 'there')
  const blobs = fileBlobs({ folder })
  assert.deepEqual(await blobs.list({ before: 'z', max: 10 }, signal), [])
  await assert.rejects(async () => blobs.get('0001-a', signal), {
    message: `there is no folder ${folder}; is its disk mounted? Bodies wait there until it is back`,
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

/** A disk that is unmounted and comes back; what is in its place meanwhile. */
async function disk(t: TestContext, folder: string) {
  const away = join(await temporaryFolder(t), 'away')
  return {
    unmount: async (left: 'an empty folder' | 'nothing'): Promise<void> => {
      await rename(folder, away)
      if (left === 'an empty folder') await mkdir(folder)
    },
    mount: async (): Promise<void> => {
      await rm(folder, { recursive: true, force: true })
      await rename(away, folder)
    },
  }
}

for (const left of ['an empty folder', 'nothing'] as const) {
  test(`fileBlobs: while its disk is not mounted and leaves ${left}, no blob is gone and none is written`, async (t) => {
    const folder = join(await temporaryFolder(t), 'blobs')
    const blobs = fileBlobs({ folder })
    await blobs.put('00011-a', Uint8Array.of(1), signal)
    const mounts = await disk(t, folder)
    await mounts.unmount(left)
    for (const one of [blobs, fileBlobs({ folder })]) {
      await assert.rejects(async () => one.get('00011-a', signal), /is its disk mounted\?/)
    }
    await assert.rejects(blobs.put('00011-b', Uint8Array.of(2), signal), /is its disk mounted\?/)
    await mounts.mount()
    assert.deepEqual([...((await blobs.get('00011-a', signal)) ?? [])], [1])
    assert.equal(await blobs.get('00011-b', signal), undefined)
    await blobs.put('00011-b', Uint8Array.of(2), signal)
  })
}

test('fileBlobs: a folder that another process made in the place of ours is not ours', async (t) => {
  const folder = join(await temporaryFolder(t), 'blobs')
  const blobs = fileBlobs({ folder })
  await blobs.put('00011-a', Uint8Array.of(1), signal)
  const mounts = await disk(t, folder)
  await mounts.unmount('nothing')
  await fileBlobs({ folder }).put('00011-c', Uint8Array.of(3), signal)
  const other = /is another one than it was/
  await assert.rejects(async () => blobs.get('00011-a', signal), other)
  await assert.rejects(blobs.put('00011-b', Uint8Array.of(2), signal), other)
  await assert.rejects(async () => blobs.list({ before: 'z', max: 1 }, signal), other)
  await mounts.mount()
  assert.deepEqual([...((await blobs.get('00011-a', signal)) ?? [])], [1])
})

test('fileBlobs: a folder from before there were marks goes on, and has one from then on', async (t) => {
  const folder = join(await temporaryFolder(t), 'blobs')
  await mkdir(join(folder, '00011'), { recursive: true })
  await writeFile(join(folder, '00011', '00011-a'), 'x')
  const [one, other] = [fileBlobs({ folder }), fileBlobs({ folder })]
  const missing = [one.get('00011-b', signal), other.get('00011-b', signal)]
  assert.deepEqual(await Promise.all(missing), [undefined, undefined])
  assert.deepEqual((await readdir(folder)).sort(), ['.millrace-blobs', '00011'])
  await (await disk(t, folder)).unmount('an empty folder')
  await assert.rejects(async () => one.get('00011-a', signal), /has lost its file/)
})

test('fileBlobs: of several that write the first body at once, all go on in one folder', async (t) => {
  const folder = join(await temporaryFolder(t), 'blobs')
  const all = Array.from({ length: 20 }, () => fileBlobs({ folder }))
  await Promise.all(all.map((one, n) => one.put(`00011-${n}`, Uint8Array.of(n), signal)))
  await Promise.all(all.map((one, n) => one.put(`00011-x${n}`, Uint8Array.of(n), signal)))
  const found = await all[0]?.list({ before: 'z', max: 100 }, signal)
  assert.equal(found?.length, 40)
  assert.deepEqual((await readdir(folder)).sort(), ['.millrace-blobs', '00011'])
})
