import type { API, Reader } from '@platformatic/kafka'
import type { KafkaModule } from './client.ts'

/** What a broker answers to a fetch. The batches are bytes still, so that one that is broken spoils none but its partition. */
export interface FetchAnswer {
  readonly errorCode: number
  readonly partitions: readonly FetchedPartition[]
}

export interface FetchedPartition {
  readonly partitionIndex: number
  readonly errorCode: number
  /** Up to here it can be read now. */
  readonly lastStable: bigint
  readonly abortedTransactions: readonly AbortedTransaction[] | null
  readonly records: Buffer
}

export interface AbortedTransaction {
  readonly producerId: bigint
  readonly firstOffset: bigint
}

type FetchRequest = Parameters<KafkaModule['fetchV13']['createRequest']>

const FETCH = 1
const VERSION = 13

/** The request is the client's; its reading of the answer fails as a whole when one batch cannot be decoded. */
export function fetchOf({
  createAPI,
  fetchV13,
}: Pick<KafkaModule, 'createAPI' | 'fetchV13'>): API<FetchRequest, FetchAnswer> {
  return createAPI<FetchRequest, FetchAnswer>(
    FETCH,
    VERSION,
    fetchV13.createRequest,
    (_correlation, _key, _version, reader) => readAnswer(reader),
  )
}

function readAnswer(reader: Reader): FetchAnswer {
  reader.readInt32() // how long the broker made us wait
  const errorCode = reader.readInt16()
  reader.readInt32() // session
  const partitions = reader.readArray((topic) => {
    topic.readUUID()
    return topic.readArray(readPartition)
  })
  return { errorCode, partitions: partitions.flat() }
}

function readPartition(reader: Reader): FetchedPartition {
  const partitionIndex = reader.readInt32()
  const errorCode = reader.readInt16()
  reader.skip(8) // high watermark
  const lastStable = reader.readInt64()
  reader.skip(8) // log start
  const abortedTransactions = reader.readNullableArray((one) => ({
    producerId: one.readInt64(),
    firstOffset: one.readInt64(),
  }))
  reader.readInt32() // preferred replica
  const records = reader.readBytes()
  return { partitionIndex, errorCode, lastStable, abortedTransactions, records }
}
