import type { MessageToProduce } from '@platformatic/kafka'
import { closedError } from '../../model/closed-error.ts'
import type { Sent } from '../../model/delivery.ts'
import type { Envelope } from '../../model/envelope.ts'
import { refused, stored } from '../../transport/outcomes.ts'
import { refusalOf, reservedHeader } from '../../transport/refusal.ts'
import type { Traits } from '../../transport/traits.ts'
import type { SendOptions } from '../../transport/transport.ts'
import { hiddenHeader } from '../../transport/wire.ts'
import { type Cluster, topicOf, withinLimit } from './client.ts'
import { kafkaFault } from './fault.ts'
import { headerBytes } from './header-bytes.ts'
import { placeOf } from './options.ts'
import { PREFIX } from './records.ts'

type Record = MessageToProduce<Buffer, Buffer, Buffer, Buffer>

const ACKS_OF_ALL = -1
/** Of a record batch itself, and of each record (lengths, deltas, attributes, at their longest). */
const BATCH_FRAME = 100
const RECORD_FRAME = 40
const HEADER_FRAME = 10

export async function send(
  cluster: Cluster,
  traits: Traits,
  queue: string,
  batch: readonly Envelope[],
  { signal, atomic = false }: SendOptions,
): Promise<readonly Sent[]> {
  signal.throwIfAborted()
  if (cluster.closing.aborted) throw closedError('the transport')
  if (batch.length === 0) return []
  const { options, sending } = cluster
  const { topic } = placeOf(options, queue)
  await topicOf(cluster, sending, queue, topic, signal === undefined ? {} : { signal })
  const now = BigInt(cluster.clock.now())
  const outcomes = batch.map((envelope) => refusal(envelope, traits, atomic))
  const open = batch.flatMap((envelope, at) => {
    if (outcomes[at] !== undefined) return []
    const record = recordOf(now, queue, topic, envelope)
    const bytes = sizeOf(record)
    if (bytes <= options.maxMessageBytes - BATCH_FRAME) return [{ at, record, bytes }]
    outcomes[at] = refused('tooLarge')
    return []
  })
  for (const part of parts(open, options.maxMessageBytes - BATCH_FRAME)) {
    const fault = await sendPart(
      cluster,
      part.map(({ record }) => record),
      signal,
    )
    for (const { at } of part) {
      const id = batch[at]?.id ?? ''
      outcomes[at] = fault === undefined ? stored(id) : { ok: false, fault }
    }
  }
  return outcomes.map((outcome) => outcome ?? refused('unknown'))
}

function refusal(envelope: Envelope, traits: Traits, atomic: boolean): Sent | undefined {
  const { remember = [] } = envelope
  if (atomic || remember.length > 0) return refused('invalid')
  const hidden = hiddenHeader(envelope, PREFIX)
  if (hidden !== undefined) return reservedHeader(hidden)
  return refusalOf(envelope, traits)
}

function recordOf(now: bigint, queue: string, topic: string, envelope: Envelope): Record {
  const { body, orderingKey } = envelope
  return {
    topic,
    value: Buffer.from(body.buffer, body.byteOffset, body.byteLength),
    headers: headerBytes(queue, envelope),
    timestamp: now,
    ...(orderingKey === undefined ? {} : { key: Buffer.from(orderingKey) }),
  }
}

function sizeOf({ key, value, headers }: Record): number {
  let bytes = RECORD_FRAME + (key?.length ?? 0) + (value?.length ?? 0)
  if (headers instanceof Map) {
    for (const [name, text] of headers) bytes += name.length + text.length + HEADER_FRAME
  }
  return bytes
}

interface Open {
  readonly at: number
  readonly record: Record
  readonly bytes: number
}

/** The client makes one record batch of what goes to one partition, and the broker bounds batches: no part may exceed one. */
function* parts(open: readonly Open[], maxBytes: number): Generator<readonly Open[]> {
  let part: Open[] = []
  let bytes = 0
  for (const one of open) {
    if (part.length > 0 && bytes + one.bytes > maxBytes) {
      yield part
      part = []
      bytes = 0
    }
    part.push(one)
    bytes += one.bytes
  }
  if (part.length > 0) yield part
}

async function sendPart(
  cluster: Cluster,
  messages: Record[],
  signal: AbortSignal,
): Promise<ReturnType<typeof kafkaFault> | undefined> {
  const { sending, options } = cluster
  const { compression } = options
  const call = sending.send({ messages, acks: ACKS_OF_ALL, idempotent: true, compression })
  try {
    await withinLimit(cluster, 'a send', call, signal)
    return undefined
  } catch (error) {
    return kafkaFault(error)
  }
}
