import { read, readString } from '../../model/probe.ts'

/** What SNS put around a message that it delivers without "raw message delivery". */
export interface Notification {
  /** The same for every queue and every delivery of this notification. */
  readonly id: string
  readonly body: string
  readonly headers: Readonly<Record<string, string>>
}

/** Undefined when it is no notification. */
export function fromSns(text: string): Notification | undefined {
  const value = parsed(text)
  const id = readString(value, 'MessageId')
  const body = readString(value, 'Message')
  if (readString(value, 'Type') !== 'Notification') return undefined
  if (id === undefined || body === undefined) return undefined
  return { id, body, headers: headersOf(read(value, 'MessageAttributes')) }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function headersOf(attributes: unknown): Readonly<Record<string, string>> {
  if (typeof attributes !== 'object' || attributes === null) return {}
  return Object.fromEntries(
    Object.keys(attributes).flatMap((name) => {
      const value = readString(read(attributes, name), 'Value')
      return value === undefined ? [] : [[name, value]]
    }),
  )
}
