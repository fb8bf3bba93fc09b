import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as client from '@platformatic/kafka'
import { readBatches } from '../../src/transports/kafka/batches.ts'

/** A batch of some messages at an offset, as a broker keeps it. */
function batch(offset: bigint, values: readonly string[], codec: 'none' | 'gzip' = 'none'): Buffer {
  const messages = values.map((value) => ({ topic: 't', value: Buffer.from(value) }))
  const bytes = client.createRecordsBatch(messages, { compression: codec }).buffer
  bytes.writeBigInt64BE(offset, 0)
  return bytes
}

/** What its broker would have to do as well, so that only what was changed is wrong. */
function withChecksum(bytes: Buffer): Buffer {
  bytes.writeUInt32BE(client.crc32c(bytes.subarray(21)), 17)
  return bytes
}

function changed(bytes: Buffer, change: (bytes: Buffer) => void): Buffer {
  const copy = Buffer.from(bytes)
  change(copy)
  return copy
}

const good = batch(10n, ['a', 'b', 'c'])
const codecOf = (codec: number) => changed(good, (one) => one.writeInt16BE(codec, 21))

test('Batches before the one that cannot be read are read, and it is named with its place.', () => {
  const table: readonly (readonly [Buffer, RegExp, bigint | undefined])[] = [
    [changed(good, (one) => one.writeUInt8(0, one.length - 2)), /checksum/, 13n],
    [withChecksum(codecOf(5)), /codec 5 is none/, 13n],
    [withChecksum(codecOf(1)), /cannot be decoded/, 13n],
    [changed(good, (one) => one.writeUInt8(1, 16)), /format is 1/, undefined],
    [changed(good, (one) => one.writeInt32BE(30, 8)), /shorter/, undefined],
    [changed(good, (one) => one.writeInt32BE(-1, 8)), /shorter/, undefined],
  ]
  for (const [bytes, why, next] of table) {
    const { batches, unreadable } = readBatches(
      client,
      Buffer.concat([batch(7n, ['x', 'y'], 'gzip'), bytes]),
    )
    assert.deepEqual(
      batches.flatMap(({ records }) => records.map(({ value }) => value?.toString())),
      ['x', 'y'],
    )
    assert.equal(unreadable?.offset, 10n, `${why}`)
    assert.match(unreadable?.why ?? '', why)
    if (next !== undefined) assert.equal(unreadable?.next, next, `${why}`)
  }
})

test('What is behind a broken batch says where it ends.', () => {
  const broken = changed(good, (one) => one.writeInt32BE(1_000, 23))
  const { unreadable } = readBatches(client, Buffer.concat([broken, batch(15n, ['d'])]))
  assert.equal(unreadable?.next, 15n)
})

test('A batch that is cut off comes the next time, unless it is the first.', () => {
  const half = good.subarray(0, 50)
  assert.deepEqual(readBatches(client, half).unreadable?.offset, 10n)
  const { batches, unreadable } = readBatches(client, Buffer.concat([batch(7n, ['x']), half]))
  assert.equal(batches.length, 1)
  assert.equal(unreadable, undefined)
  assert.deepEqual(readBatches(client, Buffer.alloc(0)), { batches: [] })
})

test('A broken length never makes a batch out of nothing, whatever it says.', () => {
  for (let length = -20; length < 80; length += 1) {
    const { batches, unreadable } = readBatches(
      client,
      changed(good, (one) => one.writeInt32BE(length, 8)),
    )
    assert.ok(unreadable !== undefined || length === good.length - 12, `${length}`)
    assert.equal(batches.length, unreadable === undefined ? 1 : 0)
  }
})
