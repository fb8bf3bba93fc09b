import type { CliIo } from './io.ts'
import { UsageError } from './usage-error.ts'

/** More than any transport takes in one message. */
const INPUT_MAX = 64 * 1024 * 1024

/** All of stdin as text. */
export async function readAll(io: CliIo): Promise<string> {
  let text = ''
  for await (const part of parts(io)) {
    text += part
    if (text.length > INPUT_MAX)
      throw new UsageError('more than 64 MB on stdin; no transport takes such a message')
  }
  return text
}

/** The lines of stdin that are not blank, with their numbers from 1. */
export async function* readLines(
  io: CliIo,
): AsyncGenerator<{ readonly number: number; readonly text: string }> {
  let rest = ''
  let number = 0
  for await (const part of parts(io)) {
    const lines = (rest + part).split('\n')
    rest = lines.pop() ?? ''
    if (rest.length > INPUT_MAX)
      throw new UsageError(`line ${number + lines.length + 1} of stdin has more than 64 MB`)
    for (const text of lines) {
      number++
      if (text.trim() !== '') yield { number, text }
    }
  }
  if (rest.trim() !== '') yield { number: number + 1, text: rest }
}

async function* parts(io: CliIo): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  for await (const part of io.stdin ?? process.stdin) {
    yield typeof part === 'string' ? part : decoder.decode(part, { stream: true })
  }
  yield decoder.decode()
}
