import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { OutboxRow, Publish } from 'millrace/outbox'
import { refused } from '../../src/transport/outcomes.ts'
import {
  add,
  envelope,
  postgresOutboxClients,
  sqliteOutboxClients,
  withOutbox,
} from './outbox-subjects.ts'
import { NO_SERVER, postgresServers } from './postgres-servers.ts'

if (postgresServers().length === 0) test('outbox on postgres', { skip: NO_SERVER }, () => {})

/** Looked at in one pass. */
const KEYS = 200
const keyOf = (at: number): string => `k${String(at).padStart(4, '0')}`

const ofOneClient = [...sqliteOutboxClients, ...postgresOutboxClients()].filter(
  ({ name }) => name.endsWith('a handle of node:sqlite') || name.endsWith('a client of pg'),
)

for (const { name, open } of ofOneClient) {
  const about = withOutbox(name, open)

  about('keys that nobody takes keep no key behind them waiting', async (subject, outbox) => {
    const rows = Array.from({ length: KEYS + 1 }, (_, at) => envelope({ orderingKey: keyOf(at) }))
    await add(subject, outbox, rows)
    const taken: string[] = []
    const publish: Publish = async (batch) =>
      batch.map(({ envelope: { id, orderingKey } }) => {
        if (orderingKey !== keyOf(KEYS)) return refused('unavailable')
        taken.push(id)
        return { ok: true, id, duplicate: false }
      })
    for (let pass = 0; pass < 3; pass += 1) await outbox.relay(1_000, publish)
    assert.deepEqual(taken, [rows[KEYS]?.id])
  })

  about('a pass that ended with the last key begins with the first', async (subject, outbox) => {
    const rows = Array.from({ length: KEYS }, (_, at) => envelope({ orderingKey: keyOf(at) }))
    await add(subject, outbox, rows)
    const first = await outbox.relay(1_000, takeAll)
    assert.equal(first.published, KEYS)
    await add(subject, outbox, [envelope({ orderingKey: keyOf(7) })])
    assert.equal((await outbox.relay(1_000, takeAll)).published, 1)
  })

  about('a key with many rows leaves room for the others in each pass', async (subject, outbox) => {
    const many = Array.from({ length: 50 }, () => envelope({ orderingKey: keyOf(1) }))
    const few = [2, 3].map((at) => envelope({ orderingKey: keyOf(at) }))
    await add(subject, outbox, [...many, ...few, envelope()])
    const seen = new Set<string | undefined>()
    const publish: Publish = async (batch) => {
      for (const { envelope: one } of batch) seen.add(one.orderingKey)
      return await takeAll(batch)
    }
    for (let pass = 0; pass < 2; pass += 1) await outbox.relay(12, publish)
    assert.deepEqual(seen, new Set([keyOf(1), keyOf(2), keyOf(3), undefined]))
  })
}

async function takeAll(rows: readonly OutboxRow[]): ReturnType<Publish> {
  return rows.map(({ envelope: { id } }) => ({ ok: true, id, duplicate: false }))
}
