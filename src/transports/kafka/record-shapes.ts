/** One record batch, as much of it as is read here. */
export interface RecordsBatch {
  readonly firstOffset: bigint
  readonly attributes: number
  readonly lastOffsetDelta: number
  readonly firstTimestamp: bigint
  readonly maxTimestamp: bigint
  readonly producerId: bigint
  readonly records: readonly KafkaRecord[]
}

export interface KafkaRecord {
  readonly offsetDelta: number
  readonly timestampDelta: number
  readonly key: Buffer | null
  readonly value: Buffer | null
  /** The last of two headers of one name counts; one without a value is empty. */
  readonly headers: Readonly<Record<string, string>>
}
