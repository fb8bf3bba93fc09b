import type { Delivery } from '../../model/delivery.ts'
import { freshHistory } from '../../model/history.ts'
import { isId } from '../../model/ids.ts'
import { fromWire } from '../../transport/wire.ts'
import type { AbortedTransaction } from './fetch-answer.ts'
import type { Lane } from './lane.ts'
import type { KafkaRecord, RecordsBatch } from './record-shapes.ts'

/** CloudEvents attributes on Kafka (its protocol binding 1.0). */
export const PREFIX = 'ce_'

const CONTROL = 0b10_0000
const TRANSACTIONAL = 0b1_0000
const ABORT = 0

/** What came for a lane: what is to be handed out, and where the next fetch begins. */
export interface Readable {
  readonly deliveries: readonly Delivery[]
  readonly next: bigint
}

export interface Batched {
  readonly records: readonly RecordsBatch[]
  readonly abortedTransactions: readonly AbortedTransaction[] | null
}

/**
 * Leaves out what Kafka keeps for itself (markers), what was taken back by its sender (aborted transactions) and what a
 * compressed batch holds from before the asked offset.
 */
export function deliveriesOf(
  lane: Lane,
  topicId: string,
  { records, abortedTransactions }: Batched,
): Readable {
  const deliveries: Delivery[] = []
  const toAbort = (abortedTransactions ?? []).toSorted((a, b) =>
    Number(a.firstOffset - b.firstOffset),
  )
  const aborting = new Set<bigint>()
  let next = lane.fetchFrom
  for (const batch of records) {
    const last = batch.firstOffset + BigInt(batch.lastOffsetDelta)
    while (toAbort[0] !== undefined && toAbort[0].firstOffset <= last) {
      aborting.add(toAbort.shift()?.producerId ?? -1n)
    }
    if ((batch.attributes & CONTROL) !== 0) {
      if (isAbort(batch)) aborting.delete(batch.producerId)
    } else if ((batch.attributes & TRANSACTIONAL) === 0 || !aborting.has(batch.producerId)) {
      for (const record of batch.records) {
        const offset = batch.firstOffset + BigInt(record.offsetDelta)
        if (offset >= lane.fetchFrom)
          deliveries.push(delivery(lane, topicId, batch, record, offset))
      }
    }
    if (last >= next) next = last + 1n
  }
  return { deliveries, next }
}

function isAbort({ records }: RecordsBatch): boolean {
  const key = records[0]?.key
  return key !== null && key !== undefined && key.length >= 4 && key.readInt16BE(2) === ABORT
}

const LOG_APPEND_TIME = 0b1000

function delivery(
  lane: Lane,
  topicId: string,
  batch: RecordsBatch,
  record: KafkaRecord,
  offset: bigint,
): Delivery {
  const { id, headers, idempotencyKey, orderingKey } = fromWire(record.headers, PREFIX)
  const bare = `${topicId}:${lane.partition}:${offset}`
  const key = orderingKey ?? (record.key === null ? undefined : record.key.toString())
  const byBroker = (batch.attributes & LOG_APPEND_TIME) !== 0
  const sentAt = byBroker
    ? Number(batch.maxTimestamp)
    : Number(batch.firstTimestamp) + record.timestampDelta
  return {
    envelope: {
      id: id !== undefined && isId(id) ? id : bare,
      body: record.value ?? EMPTY,
      headers,
      priority: 0,
      ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
      ...(key === undefined ? {} : { orderingKey: key }),
    },
    sentAt,
    deliveries: offset < lane.untouchedFrom ? undefined : 1,
    history: freshHistory,
    alone: false,
    fence: undefined,
    claim: lane.claim,
    lane: lane.name,
    position: offset,
    receipt: { lane, isAcked: false } satisfies Receipt,
  }
}

const EMPTY = new Uint8Array(0)

/** What a delivery of this transport carries for it. */
export interface Receipt {
  readonly lane: Lane
  /** A confirmed ack; a second one is lost. */
  isAcked: boolean
}

export function receiptOf({ receipt }: Delivery): Receipt | undefined {
  const isOurs = typeof receipt === 'object' && receipt !== null && 'lane' in receipt
  return isOurs && 'isAcked' in receipt ? (receipt as Receipt) : undefined
}
