import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { type TestContext, test } from 'node:test'
import { type Connector, createMillrace, defineQueue, type OutboxConnector } from 'millrace'
import { sqliteInbox } from 'millrace/inbox'
import { memory } from 'millrace/memory'
import { sqliteOutbox } from 'millrace/outbox'
import { sqlite } from 'millrace/sqlite'
import { z } from 'zod'
import { silentLogger } from '../../src/model/logger.ts'
import { until } from '../transports/until.ts'

const payload = z.object({ n: z.number() })
const orders = defineQueue({ name: 'orders', owner: 'o', payload })
const mails = defineQueue({ name: 'mails', owner: 'o', payload })

/** A handler sends within `ctx.tx` of an inbox in `db`: what start-up and the view said of it, and where its messages ended. */
async function told(
  t: TestContext,
  db: DatabaseSync,
  parts: { readonly transport: Connector; readonly outbox?: OutboxConnector },
) {
  const warnings: string[] = []
  const ends: string[] = []
  const app = await createMillrace({
    ...parts,
    inbox: sqliteInbox({ db }),
    queues: [orders, mails],
    onDeadLetter: ({ reason }) => void ends.push(/\(([^(]*)\)$/.exec(reason)?.[1] ?? reason),
    logger: { ...silentLogger, warn: (message) => void warnings.push(message) },
  })
  t.after(() => app.close({ timeoutMs: 0 }))
  app.work(orders, (message, ctx) => ctx.tx(() => void ctx.send(mails, message.payload)))
  app.work(mails, () => void ends.push('sent'))
  await app.start()
  const said = [...warnings]
  await app.send(orders, { n: 1 })
  await until('the message to end', () => ends.length > 0)
  const { notes } = app.admin.backend()
  assert.deepEqual((await app.health()).reasons, [])
  return { said, notes, ends }
}

const sentence = (others: string): string =>
  `the database of inbox sqlite is not that of ${others}: what a handler sends within ctx.tx is refused ` +
  `(MILLRACE_FOREIGN_TRANSACTION) and its message is dead at once; if one does, give createMillrace outbox: sqliteOutbox(…) of the inbox's database`

test('An inbox whose database neither the queues nor an outbox are in is said at the start, before its messages die.', async (t) => {
  const [db, other] = [new DatabaseSync(':memory:'), new DatabaseSync(':memory:')]
  t.after(() => void [db, other].map((one) => one.close()))
  const missing = (others: string) => ({
    said: [sentence(others)],
    notes: [sentence(others)],
    ends: ['permanent: MILLRACE_FOREIGN_TRANSACTION'],
  })
  assert.deepEqual(await told(t, db, { transport: memory() }), missing('transport memory'))
  assert.deepEqual(
    await told(t, db, { transport: sqlite({ db: other }) }),
    missing('transport sqlite'),
  )
  assert.deepEqual(
    await told(t, db, { transport: memory(), outbox: sqliteOutbox({ db: other }) }),
    missing('transport memory or outbox sqlite'),
  )
})

test('An inbox beside the queues, or beside an outbox, misses none.', async (t) => {
  const db = new DatabaseSync(':memory:')
  t.after(() => db.close())
  const none = { said: [], notes: [], ends: ['sent'] }
  assert.deepEqual(await told(t, db, { transport: sqlite({ db }) }), none)
  assert.deepEqual(await told(t, db, { transport: memory(), outbox: sqliteOutbox({ db }) }), none)
})
