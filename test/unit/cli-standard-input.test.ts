import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import type { CliIo } from '../../src/cli/io.ts'
import { readAll, readLines } from '../../src/cli/standard-input.ts'

const MIB = 1024 * 1024

function ioOf(stdin: AsyncIterable<Uint8Array | string>): CliIo {
  const nowhere = { write: () => true }
  const { signal } = new AbortController()
  return { stdout: nowhere, stderr: nowhere, env: {}, cwd: '.', signal, stdin }
}

async function* of(
  ...parts: readonly (Uint8Array | string)[]
): AsyncGenerator<Uint8Array | string> {
  yield* parts
}

async function linesOf(stdin: AsyncIterable<Uint8Array | string>): Promise<readonly string[]> {
  const lines: string[] = []
  for await (const { number, text } of readLines(ioOf(stdin))) lines.push(`${number} ${text}`)
  return lines
}

/** As a pipe gives them, with turns of the event loop in between. */
function endless(partBytes: number) {
  const part = Buffer.alloc(partBytes, 'x')
  const seen = { bytes: 0 }
  async function* parts(max: number): AsyncGenerator<Uint8Array> {
    while (seen.bytes < max) {
      seen.bytes += partBytes
      await setImmediate()
      yield part
    }
  }
  return { seen, parts }
}

test('lines and characters that are cut between two parts come whole, blank lines only count', async () => {
  const text = Buffer.from('\ufeff"é€"\n\n "b" \n"c"')
  const bytes = Array.from(text, (_, at) => text.subarray(at, at + 1))
  const expected = ['1 "é€"', '3  "b" ', '4 "c"']
  assert.deepEqual(await linesOf(of(...bytes)), expected)
  assert.deepEqual(await linesOf(of(text)), expected)
  assert.deepEqual(await linesOf(of('"é€"\n\n "b" ', '\n"c"\n')), expected)
})

test('bytes that are no text are refused by the number of their line, also where the input ends within a character', async () => {
  const before = Buffer.from('"a"\n\n"é')
  for (const input of [Buffer.concat([before, Buffer.of(0xff)]), before.subarray(0, -1)]) {
    await assert.rejects(linesOf(of(input)), /line 3 of stdin is not UTF-8 text/)
  }
})

test('a long line in many parts is read once, not again with each part', {
  timeout: 60_000,
}, async () => {
  const { parts } = endless(4_096)
  const lines = await linesOf(parts(60 * MIB))
  assert.deepEqual([lines.length, lines[0]?.length], [1, 60 * MIB + 2])
})

test('what is longer than any message is refused before the rest of it is read', async () => {
  for (const read of [linesOf, (stdin: AsyncIterable<Uint8Array>) => readAll(ioOf(stdin))]) {
    const { seen, parts } = endless(MIB)
    await assert.rejects(read(parts(1_024 * MIB)), /more than 64 MB/)
    assert.equal(seen.bytes, 65 * MIB)
  }
})
