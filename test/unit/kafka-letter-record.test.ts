import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { DeadLetter } from '../../src/model/dead-letter.ts'
import { freshHistory } from '../../src/model/history.ts'
import {
  auditRecord,
  HEADERS,
  type LetterRecord,
  letterOf,
  letterRecord,
  said,
} from '../../src/transports/kafka/letter-record.ts'

/** As it comes back from the topic; there a removal has null. */
function asRead({ key, value, headers }: LetterRecord): Parameters<typeof said>[0] {
  const framing = { timestampDelta: 0, offsetDelta: 0 }
  const texts = [...headers].map(([name, text]) => [name.toString(), text.toString()])
  return { ...framing, key, value: value ?? Buffer.alloc(0), headers: Object.fromEntries(texts) }
}

const entry = { at: 1, act: 'skip', queue: 'q', messageId: 'a', actor: 'x', reason: 'y' } as const
const letter: DeadLetter = {
  envelope: { id: 'a', body: new Uint8Array([1]), headers: {}, priority: 0 },
  ...{ queue: 'q', owner: 'o', errorClass: 'permanent', reason: 'r' },
  ...{ history: freshHistory, sentAt: 1, deadAt: 2 },
}

test('What somebody else wrote into a topic of dead letters is none of ours, and hides none of ours.', () => {
  const audit = auditRecord(entry, 2, 'token')
  assert.deepEqual(said(asRead(audit)), {
    ...{ kind: 'audit', key: audit.key.toString(), entry, deadAt: 2, token: 'token' },
  })
  assert.equal(letterOf(asRead(letterRecord(letter)))?.deadAt, 2)
  for (const text of ['{', 'null', '[]', '{"entry":{}}', '{"history":{"records":[]}}']) {
    const value = Buffer.alloc(1)
    const key = Buffer.from(' audit x')
    const auditHeaders = new Map([[Buffer.from(HEADERS.audit), Buffer.from(text)]])
    assert.equal(said(asRead({ key, value, headers: auditHeaders })), undefined, text)
    const letterHeaders = new Map([[Buffer.from(HEADERS.letter), Buffer.from(text)]])
    assert.equal(letterOf(asRead({ key, value, headers: letterHeaders })), undefined, text)
  }
})
