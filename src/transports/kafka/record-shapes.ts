import type { readRecordsBatch } from '@platformatic/kafka'

export type RecordsBatch = ReturnType<typeof readRecordsBatch>
export type KafkaRecord = RecordsBatch['records'][number]
