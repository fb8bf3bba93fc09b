import assert from 'node:assert/strict'
import { Writable } from 'node:stream'
import { test } from 'node:test'
import { gatherWrites } from '../../src/transports/rabbitmq/gather-writes.ts'

/** What amqplib has instead of a socket when a test looks at what reaches the system. */
function socket(): { readonly stream: Writable; readonly calls: string[][] } {
  const calls: string[][] = []
  const stream = new Writable({
    decodeStrings: false,
    write(chunk, _encoding, done) {
      calls.push([String(chunk)])
      done()
    },
    writev(chunks, done) {
      calls.push(chunks.map(({ chunk }) => String(chunk)))
      done()
    },
  })
  return { stream, calls }
}

test('what is written in one turn leaves in one call, in its order, and the next turn in the next', async () => {
  const { stream, calls } = socket()
  gatherWrites({ connection: { stream } } as never)
  for (const text of ['a', 'b', 'c']) stream.write(text)
  assert.deepEqual(calls, [])
  await Promise.resolve()
  stream.write('d')
  await Promise.resolve()
  assert.deepEqual(calls, [['a', 'b', 'c'], ['d']])
})

test('an end does not leave the last ones behind', async () => {
  const { stream, calls } = socket()
  gatherWrites({ connection: { stream } } as never)
  stream.write('a')
  stream.write('b')
  await new Promise<void>((resolve) => stream.end('c', resolve))
  assert.deepEqual(calls.flat(), ['a', 'b', 'c'])
})

test('a client that keeps its socket elsewhere is left as it is', () => {
  gatherWrites({ connection: {} } as never)
})
