import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type { BlobStore } from 'millrace/blobs'

const { signal } = new AbortController()

/** What every blob store promises. */
export function blobPromises(name: string, open: (t: TestContext) => Promise<BlobStore>): void {
  test(`${name}: what was put is there until it is removed`, async (t) => {
    const blobs = await open(t)
    assert.equal(await blobs.get('0001-a', signal), undefined)
    assert.deepEqual(await blobs.list({ before: 'z', max: 10 }, signal), [])
    await blobs.put('0001-a', Uint8Array.of(1, 2), signal)
    assert.deepEqual([...((await blobs.get('0001-a', signal)) ?? [])], [1, 2])
    await blobs.put('0001-a', Uint8Array.of(3), signal)
    assert.deepEqual([...((await blobs.get('0001-a', signal)) ?? [])], [3])
    await blobs.remove(['0001-a', '0002-never'], signal)
    assert.equal(await blobs.get('0001-a', signal), undefined)
    await blobs.remove([], signal)
  })

  test(`${name}: every byte comes back, also none`, async (t) => {
    const blobs = await open(t)
    const body = Uint8Array.from({ length: 70_000 }, (_, n) => n)
    await blobs.put('0001-a', body, signal)
    assert.deepEqual(Buffer.from((await blobs.get('0001-a', signal)) ?? []), Buffer.from(body))
    await blobs.put('0002-b', new Uint8Array(), signal)
    assert.equal((await blobs.get('0002-b', signal))?.byteLength, 0)
  })

  test(`${name}: the first names before a name are listed in order, across the folders`, async (t) => {
    const blobs = await open(t)
    for (const one of ['00022-d', '00011-b', '00030-e', '00011-a', '00020-c']) {
      await blobs.put(one, new Uint8Array(1), signal)
    }
    assert.deepEqual(await blobs.list({ before: '00022-d', max: 10 }, signal), [
      '00011-a',
      '00011-b',
      '00020-c',
    ])
    assert.deepEqual(await blobs.list({ before: '00022-d', max: 2 }, signal), [
      '00011-a',
      '00011-b',
    ])
    assert.deepEqual(await blobs.list({ before: '0', max: 1 }, signal), [])
  })
}
