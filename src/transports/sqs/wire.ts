import type {
  Message,
  MessageAttributeValue,
  SendMessageBatchRequestEntry,
} from '@aws-sdk/client-sqs'
import type { Envelope } from '../../model/envelope.ts'
import { fromWire, hiddenHeader, toWire } from '../../transport/wire.ts'
import { fromSns } from './sns.ts'

/** The one attribute that carries all headers as a JSON object: SQS takes ten attributes, senders have more. */
export const ATTRIBUTE = 'millrace'
/** CloudEvents has no binding for SQS; inside of our attribute its attributes stand as in HTTP. */
const PREFIX = 'ce-'
/** How a body travels that SQS does not take as text. */
const BODY_HEADER = 'millrace-body'
/** SQS takes no empty body. */
const EMPTY = '-'

export type WireMessage = Pick<SendMessageBatchRequestEntry, 'MessageBody' | 'MessageAttributes'>

/** A header of the sender's that would hide one of ours. */
export function reservedIn(envelope: Envelope): string | undefined {
  return (
    hiddenHeader(envelope, PREFIX) ?? (BODY_HEADER in envelope.headers ? BODY_HEADER : undefined)
  )
}

/** Undefined when there is such a header. */
export function wireMessage(queue: string, envelope: Envelope): WireMessage | undefined {
  if (reservedIn(envelope) !== undefined) return undefined
  const headers = toWire(queue, envelope, PREFIX)
  const { body } = envelope
  const text = plainText(body)
  if (body.byteLength === 0) return written(EMPTY, { ...headers, [BODY_HEADER]: 'empty' })
  if (text !== undefined) return written(text, headers)
  const base64 = Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString('base64')
  return written(base64, { ...headers, [BODY_HEADER]: 'base64' })
}

function written(MessageBody: string, headers: Readonly<Record<string, string>>): WireMessage {
  const StringValue = ascii(JSON.stringify(headers))
  return {
    MessageBody,
    MessageAttributes: { [ATTRIBUTE]: { DataType: 'String', StringValue } },
  }
}

/** What SQS counts of a message. */
export function wireBytes({ MessageBody = '', MessageAttributes = {} }: WireMessage): number {
  let bytes = Buffer.byteLength(MessageBody)
  for (const [name, { DataType = '', StringValue = '' }] of Object.entries(MessageAttributes)) {
    bytes += Buffer.byteLength(name) + DataType.length + Buffer.byteLength(StringValue)
  }
  return bytes
}

/** @param sns whether a notification of SNS is taken out of its envelope */
export function envelopeOf(message: Message, sns: boolean): Envelope {
  const packed = packedHeaders(message.MessageAttributes?.[ATTRIBUTE]?.StringValue)
  const notified = sns && packed === undefined ? fromSns(message.Body ?? '') : undefined
  const wire = packed ?? notified?.headers ?? foreignHeaders(message.MessageAttributes ?? {})
  const { [BODY_HEADER]: how, ...headers } = wire
  const { id, ...rest } = fromWire(headers, PREFIX)
  return {
    ...rest,
    id: id ?? notified?.id ?? message.MessageId ?? '',
    body: bodyOf(notified?.body ?? message.Body ?? '', packed === undefined ? undefined : how),
    priority: 0,
  }
}

function bodyOf(text: string, how: string | undefined): Uint8Array {
  if (how === 'empty') return new Uint8Array(0)
  return how === 'base64' ? Buffer.from(text, 'base64') : new TextEncoder().encode(text)
}

/** Undefined when it is not what we write: somebody else's attribute of the same name. */
function packedHeaders(text: string | undefined): Readonly<Record<string, string>> | undefined {
  if (text === undefined) return undefined
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined
    const pairs = Object.entries(value)
    return Object.fromEntries(
      pairs.filter((pair): pair is [string, string] => typeof pair[1] === 'string'),
    )
  } catch {
    return undefined
  }
}

function foreignHeaders(
  attributes: Readonly<Record<string, MessageAttributeValue>>,
): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(attributes).map(([name, { StringValue, BinaryValue }]) => [
      name,
      StringValue ?? Buffer.from(BinaryValue ?? []).toString('base64'),
    ]),
  )
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
/** What SQS takes: the characters of XML 1.0. */
const NOT_TEXT = /[^\t\n\r\u{20}-\u{D7FF}\u{E000}-\u{FFFD}\u{10000}-\u{10FFFF}]/u

function plainText(body: Uint8Array): string | undefined {
  try {
    const text = utf8.decode(body)
    return NOT_TEXT.test(text) ? undefined : text
  } catch {
    return undefined
  }
}

/** Attributes take the same characters; JSON can say all others in ASCII. */
function ascii(json: string): string {
  return json.replace(/[^ -~]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`)
}
