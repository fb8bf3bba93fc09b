import type { CliIo } from './io.ts'
import { UsageError } from './usage-error.ts'

/** More than any transport takes in one message. */
const INPUT_MAX = 64 * 1024 * 1024
const LINE_END = 0x0a
const decoder = new TextDecoder('utf-8', { fatal: true })
// A mark at the beginning of the input is no part of it; elsewhere it stays, and JSON refuses it.
const laterDecoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** All of stdin. */
export async function readAll(io: CliIo): Promise<Uint8Array> {
  const gathered = gathering('more than 64 MB on stdin; no transport takes such a message')
  for await (const part of parts(io)) gathered.add(part)
  return gathered.take()
}

/**
 * The lines of stdin that are not blank, with their numbers from 1. A line is put together once, at its end: a long one comes in
 * many parts.
 */
export async function* readLines(
  io: CliIo,
): AsyncGenerator<{ readonly number: number; readonly text: string }> {
  let number = 1
  let line = lineAt(number)
  const taken = (): string => textOf(line.take(), `line ${number} of stdin`, number > 1)
  for await (const part of parts(io)) {
    let from = 0
    for (let end = part.indexOf(LINE_END); end !== -1; end = part.indexOf(LINE_END, from)) {
      line.add(part.subarray(from, end))
      const text = taken()
      if (text.trim() !== '') yield { number, text }
      from = end + 1
      number += 1
      line = lineAt(number)
    }
    line.add(part.subarray(from))
  }
  const text = taken()
  if (text.trim() !== '') yield { number, text }
}

/**
 * Text that is to be stored: bytes that are none would be stored as U+FFFD, which nobody sent.
 * @throws UsageError
 */
export function textOf(bytes: Uint8Array, what: string, isLater = false): string {
  try {
    return (isLater ? laterDecoder : decoder).decode(bytes)
  } catch (cause) {
    throw new UsageError(`${what} is not UTF-8 text; convert it first, as iconv -t UTF-8 does`, {
      cause,
    })
  }
}

interface Gathering {
  add(part: Uint8Array): void
  take(): Uint8Array
}

function lineAt(number: number): Gathering {
  return gathering(`line ${number} of stdin has more than 64 MB`)
}

function gathering(tooLong: string): Gathering {
  const some: Uint8Array[] = []
  let bytes = 0
  return {
    add: (part) => {
      bytes += part.byteLength
      if (bytes > INPUT_MAX) throw new UsageError(tooLong)
      some.push(part)
    },
    take: () => (some.length === 1 && some[0] !== undefined ? some[0] : Buffer.concat(some)),
  }
}

async function* parts(io: CliIo): AsyncGenerator<Uint8Array> {
  for await (const part of io.stdin ?? process.stdin) {
    yield typeof part === 'string' ? Buffer.from(part) : part
  }
}
