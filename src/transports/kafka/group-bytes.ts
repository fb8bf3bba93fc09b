/**
 * What members of a consumer group tell each other through the broker: the forms of Kafka's own consumers
 * (ConsumerProtocolSubscription version 2, ConsumerProtocolAssignment version 0), so that others may read along.
 */
export interface SubscriptionBytes {
  readonly topics: readonly string[]
  readonly owned: ReadonlyMap<string, readonly number[]>
  readonly generation: number
  /** See `firstAdded`. */
  readonly addedFrom: number | undefined
}

export function writeSubscription({
  topics,
  owned,
  generation,
  addedFrom,
}: SubscriptionBytes): Buffer {
  return Buffer.concat([
    int16(2),
    int32(topics.length),
    ...topics.map(text),
    userData(addedFrom),
    partitionLists(owned),
    int32(generation),
  ])
}

export function readSubscription(bytes: Buffer): SubscriptionBytes {
  const from = reader(bytes)
  const version = from.int16()
  const topics = from.list(from.text)
  const addedFrom = readUserData(from.bytes())
  const owned = version >= 1 ? from.partitionLists() : new Map<string, readonly number[]>()
  return { topics, owned, generation: version >= 2 ? from.int32() : -1, addedFrom }
}

export interface AssignmentBytes {
  readonly partitions: ReadonlyMap<string, readonly number[]>
  /** See `firstAdded`. */
  readonly addedFrom: number | undefined
}

export function writeAssignment({ partitions, addedFrom }: AssignmentBytes): Buffer {
  return Buffer.concat([int16(0), partitionLists(partitions), userData(addedFrom)])
}

/** Nothing assigned comes as no bytes. */
export function readAssignment(bytes: Buffer): AssignmentBytes {
  if (bytes.length === 0) return { partitions: new Map(), addedFrom: undefined }
  const from = reader(bytes)
  from.int16()
  return { partitions: from.partitionLists(), addedFrom: readUserData(from.bytes()) }
}

/** Both forms have a place for what only members of one kind understand: here a version of ours, and one number. */
const USER_DATA_VERSION = 1

function userData(addedFrom: number | undefined): Buffer {
  if (addedFrom === undefined) return int32(-1)
  const own = Buffer.concat([int16(USER_DATA_VERSION), int32(addedFrom)])
  return Buffer.concat([int32(own.length), own])
}

/** Of another version, or none: undefined. */
function readUserData(bytes: Buffer): number | undefined {
  if (bytes.length < 6 || bytes.readInt16BE(0) !== USER_DATA_VERSION) return undefined
  return bytes.readInt32BE(2)
}

function int16(value: number): Buffer {
  const bytes = Buffer.alloc(2)
  bytes.writeInt16BE(value)
  return bytes
}

function int32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeInt32BE(value)
  return bytes
}

function text(value: string): Buffer {
  const bytes = Buffer.from(value)
  return Buffer.concat([int16(bytes.length), bytes])
}

function partitionLists(lists: ReadonlyMap<string, readonly number[]>): Buffer {
  const entries = [...lists].map(([topic, partitions]) =>
    Buffer.concat([text(topic), int32(partitions.length), ...partitions.map(int32)]),
  )
  return Buffer.concat([int32(entries.length), ...entries])
}

interface BytesReader {
  int16(): number
  int32(): number
  text(): string
  bytes(): Buffer
  list<T>(one: () => T): readonly T[]
  partitionLists(): ReadonlyMap<string, readonly number[]>
}

function reader(bytes: Buffer): BytesReader {
  let at = 0
  const moved = (by: number): number => {
    at += by
    return at - by
  }
  const self: BytesReader = {
    int16: () => bytes.readInt16BE(moved(2)),
    int32: () => bytes.readInt32BE(moved(4)),
    text: () => {
      const length = self.int16()
      return bytes.toString('utf8', at, moved(length) + length)
    },
    bytes: () => {
      const length = Math.max(0, self.int32())
      const start = moved(length)
      return bytes.subarray(start, start + length)
    },
    list: (one) => Array.from({ length: Math.max(0, self.int32()) }, one),
    partitionLists: () => new Map(self.list(() => [self.text(), self.list(self.int32)] as const)),
  }
  return self
}
