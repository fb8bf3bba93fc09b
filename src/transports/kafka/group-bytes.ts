/**
 * What members of a consumer group tell each other through the broker: the forms of Kafka's own consumers
 * (ConsumerProtocolSubscription version 2, ConsumerProtocolAssignment version 0), so that others may read along.
 */
export interface SubscriptionBytes {
  readonly topics: readonly string[]
  readonly owned: ReadonlyMap<string, readonly number[]>
  readonly generation: number
}

export function writeSubscription({ topics, owned, generation }: SubscriptionBytes): Buffer {
  return Buffer.concat([
    int16(2),
    int32(topics.length),
    ...topics.map(text),
    int32(-1),
    partitionLists(owned),
    int32(generation),
  ])
}

export function readSubscription(bytes: Buffer): SubscriptionBytes {
  const from = reader(bytes)
  const version = from.int16()
  const topics = from.list(from.text)
  from.bytes()
  const owned = version >= 1 ? from.partitionLists() : new Map<string, readonly number[]>()
  return { topics, owned, generation: version >= 2 ? from.int32() : -1 }
}

export function writeAssignment(partitions: ReadonlyMap<string, readonly number[]>): Buffer {
  return Buffer.concat([int16(0), partitionLists(partitions), int32(-1)])
}

/** Nothing assigned comes as no bytes. */
export function readAssignment(bytes: Buffer): ReadonlyMap<string, readonly number[]> {
  if (bytes.length === 0) return new Map()
  const from = reader(bytes)
  from.int16()
  return from.partitionLists()
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
  bytes(): void
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
    bytes: () => void moved(Math.max(0, self.int32())),
    list: (one) => Array.from({ length: Math.max(0, self.int32()) }, one),
    partitionLists: () => new Map(self.list(() => [self.text(), self.list(self.int32)] as const)),
  }
  return self
}
