import type { KafkaModule } from './client.ts'
import { readRecords } from './record-reader.ts'
import type { RecordsBatch } from './record-shapes.ts'

/** What came of one partition: what could be read, up to the first batch that could not. */
export interface Batches {
  readonly batches: readonly RecordsBatch[]
  readonly unreadable?: Unreadable
}

/** A record batch that is there and cannot be read. */
export interface Unreadable {
  /** Where it begins. */
  readonly offset: bigint
  /** Where the next one begins; undefined where nothing says so. */
  readonly next: bigint | undefined
  /** A clause: what is wrong, and what would help. */
  readonly why: string
}

/** Of a batch, as it is on the wire (https://kafka.apache.org/documentation/#recordbatch). */
const LENGTH_AT = 8
const HEAD = 12
const MAGIC_AT = 16
const CRC_AT = 17
const ATTRIBUTES_AT = 21
const LAST_DELTA_AT = 23
const FIRST_TIMESTAMP_AT = 27
const MAX_TIMESTAMP_AT = 35
const PRODUCER_AT = 43
const COUNT_AT = 57
const SMALLEST = 61
const MAGIC = 2
const CODEC = 0b111

const TOO_SHORT = 'it says that it is shorter than any batch is'

/** The bytes of one partition as its broker sent them; the last batch may be cut off, and comes whole the next time. */
export function readBatches(module: KafkaModule, bytes: Buffer): Batches {
  const batches: RecordsBatch[] = []
  let at = 0
  while (bytes.length - at > MAGIC_AT) {
    const end = at + HEAD + bytes.readInt32BE(at + LENGTH_AT)
    const isCutOff = end > bytes.length
    // The first one is always whole, however large: what is not, says something wrong of its length.
    if (isCutOff && at > 0) break
    const one = bytes.subarray(at, isCutOff ? bytes.length : Math.max(end, at + HEAD))
    const read = isCutOff ? 'it says that it is longer than it is' : readBatch(module, one)
    if (typeof read === 'string') {
      return { batches, unreadable: { ...placeOf(bytes, at, end), why: read } }
    }
    batches.push(read)
    at = end
  }
  return { batches }
}

/** The batch, or why there is none. */
function readBatch(module: KafkaModule, bytes: Buffer): RecordsBatch | string {
  if (bytes.length <= MAGIC_AT) return TOO_SHORT
  const magic = bytes[MAGIC_AT]
  if (magic !== MAGIC)
    return `its format is ${magic}, and only ${MAGIC} (Kafka 0.11 and newer) is read`
  if (bytes.length < SMALLEST) return TOO_SHORT
  const checksum = module.crc32c(bytes.subarray(ATTRIBUTES_AT))
  if (checksum !== bytes.readUInt32BE(CRC_AT)) return 'its checksum (CRC) is wrong'
  const codec = bytes.readInt16BE(ATTRIBUTES_AT) & CODEC
  const algorithm = module.compressionsAlgorithmsByBitmask[codec]
  if (algorithm?.available !== true) {
    return `its compression codec ${codec} is none that this client knows (none, gzip, snappy, lz4, zstd); a newer client may`
  }
  try {
    const packed = bytes.subarray(SMALLEST)
    const records = codec === 0 ? packed : algorithm.decompressSync(packed)
    return batchOf(bytes, readRecords(records, bytes.readInt32BE(COUNT_AT)))
  } catch (error) {
    return `it cannot be decoded (${error instanceof Error ? error.message : String(error)})`
  }
}

function batchOf(bytes: Buffer, records: RecordsBatch['records']): RecordsBatch {
  return {
    firstOffset: bytes.readBigInt64BE(0),
    attributes: bytes.readInt16BE(ATTRIBUTES_AT),
    lastOffsetDelta: bytes.readInt32BE(LAST_DELTA_AT),
    firstTimestamp: bytes.readBigInt64BE(FIRST_TIMESTAMP_AT),
    maxTimestamp: bytes.readBigInt64BE(MAX_TIMESTAMP_AT),
    producerId: bytes.readBigInt64BE(PRODUCER_AT),
    records,
  }
}

function placeOf(bytes: Buffer, at: number, end: number): Pick<Unreadable, 'offset' | 'next'> {
  const offset = bytes.readBigInt64BE(at)
  // What the next one says of itself is truer than what a broken one says of its end.
  if (end - at >= SMALLEST && bytes[end + MAGIC_AT] === MAGIC) {
    const next = bytes.readBigInt64BE(end)
    if (next > offset) return { offset, next }
  }
  if (bytes[at + MAGIC_AT] !== MAGIC || bytes.length < at + SMALLEST)
    return { offset, next: undefined }
  const delta = bytes.readInt32BE(at + LAST_DELTA_AT)
  return { offset, next: delta < 0 ? undefined : offset + BigInt(delta) + 1n }
}
