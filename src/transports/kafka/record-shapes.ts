import type { fetchV13 } from '@platformatic/kafka'

export type FetchResponse = Awaited<ReturnType<(typeof fetchV13.api)['async']>>
export type FetchResponsePartition = FetchResponse['responses'][number]['partitions'][number]
export type RecordsBatch = NonNullable<FetchResponsePartition['records']>[number]
export type KafkaRecord = RecordsBatch['records'][number]
