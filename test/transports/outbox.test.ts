import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Outbox, OutboxRow, Publish } from 'millrace/outbox'
import type { Sent } from '../../src/model/delivery.ts'
import type { Envelope } from '../../src/model/envelope.ts'
import { refused } from '../../src/transport/outcomes.ts'
import {
  add,
  envelope,
  postgresOutboxClients,
  sqliteOutboxClients,
  withOutbox,
} from './outbox-subjects.ts'
import { NO_SERVER, postgresServers } from './postgres-servers.ts'
import { until } from './until.ts'

if (postgresServers().length === 0) test('outbox on postgres', { skip: NO_SERVER }, () => {})

for (const { name, open } of [...sqliteOutboxClients, ...postgresOutboxClients()]) {
  const about = withOutbox(name, open)

  about(
    'what was rolled back is never published, what was committed is',
    async (subject, outbox) => {
      const broker = recorder()
      const undone = await subject.begin()
      await (await rowsIn(outbox, undone.tx)).add('orders', [envelope()])
      await undone.rollback()
      assert.deepEqual(await outbox.relay(10, broker.publish), nothing)
      const done = envelope()
      await add(subject, outbox, [done])
      assert.deepEqual(await outbox.relay(10, broker.publish), {
        taken: 1,
        published: 1,
        failed: [],
      })
      assert.deepEqual(broker.ids(), [done.id])
      assert.deepEqual(await outbox.relay(10, broker.publish), nothing)
      assert.deepEqual(await outbox.lag(), { rows: 0, ageMs: 0 })
    },
  )

  about('an envelope comes out as it went in', async (subject, outbox) => {
    const full: Envelope = {
      id: 'id-"\\{},NULL',
      body: Uint8Array.from({ length: 256 }, (_, n) => n),
      headers: { traceparent: '00-a', text: 'ключ "\\{},\u0001' },
      priority: 9,
      idempotencyKey: 'i-"\\{}',
      orderingKey: 'o-"\\{}',
      fairKey: 'f-"\\{}',
      fairWeight: 0.5,
      readyAt: 4_102_444_800_000,
      remember: [
        { kind: 'idempotency', key: 'i', fingerprint: 'f', windowMs: 86_400_000 },
        { kind: 'dedupe', key: 'd', fingerprint: undefined, windowMs: 1_000 },
      ],
    }
    const plain = envelope({ body: new Uint8Array(0) })
    await add(subject, outbox, [full, plain])
    const broker = recorder()
    await outbox.relay(10, broker.publish)
    assert.deepEqual(broker.rows.map(plainRow), [
      { queue: 'orders', tries: 0, envelope: full },
      { queue: 'orders', tries: 0, envelope: plain },
    ])
  })

  about(
    'what is stuck is listed, tried again at once, or discarded with a reason',
    async (subject, outbox) => {
      const other = await subject.connect()
      const [first, second, alone, elsewhere] = [
        envelope({ orderingKey: 'k' }),
        envelope({ orderingKey: 'k' }),
        envelope(),
        envelope(),
      ]
      await add(subject, outbox, [first, second, alone])
      await add(subject, outbox, [elsewhere], 'elsewhere')
      const stuck = outbox.stuck
      assert.ok(stuck !== undefined && other.stuck !== undefined)
      const list = async (limit = 10, after?: string) =>
        (await other.stuck?.list('orders', { limit, after })) ?? []
      assert.deepEqual(await list(), [])
      const secret = new Error('no right at amqp://ada:secret@host\nand more')
      const nobody: Publish = async (rows) => {
        // On its way, so nobody may decide.
        const ids = rows.map((row) => row.envelope.id)
        assert.deepEqual(await other.stuck?.discard('orders', ids, { actor: 'a', reason: 'r' }), [])
        return rows.map(({ envelope: { id } }) =>
          id === alone.id
            ? refused('denied', { cause: secret })
            : refused('conflict', { id: 'm0' }),
        )
      }
      // Five tries, so that none is due by itself before the test is over.
      const times = 5
      for (let tries = 1; tries <= times; tries++) {
        await outbox.relay(10, nobody)
        if (tries === times) break
        await stuck.retry('orders', [first.id, alone.id])
        await stuck.retry('elsewhere', [elsewhere.id])
      }
      const found = await list()
      assert.deepEqual(
        found.map(({ messageId, orderingKey, tries, lastError }) => [
          messageId,
          orderingKey,
          tries,
          lastError,
        ]),
        [
          [first.id, 'k', times, 'conflict: message m0 has its key'],
          [alone.id, undefined, times, 'denied: no right at amqp://[redacted]@host'],
        ],
      )
      assert.ok(found.every(({ addedAt, nextTryAt }) => nextTryAt > addedAt))
      assert.deepEqual(
        (await list(1, found[0]?.place)).map((row) => row.messageId),
        [alone.id],
      )

      const broker = recorder()
      assert.equal((await outbox.relay(10, broker.publish)).taken, 0)
      assert.deepEqual(await stuck.retry('orders', [alone.id, second.id, 'none']), [alone.id])
      assert.equal((await outbox.relay(10, broker.publish)).published, 1)
      const note = { actor: 'cli:ada', reason: 'sent twice' }
      assert.deepEqual(await stuck.discard('elsewhere', [first.id], note), [])
      assert.deepEqual(await stuck.discard('orders', [first.id, second.id, first.id], note), [
        first.id,
      ])
      assert.deepEqual(await list(), [])
      const kept = (await other.stuck?.audit('orders', 10)) ?? []
      assert.deepEqual(
        kept.map(({ at: _, ...entry }) => entry),
        [{ act: 'discard', queue: 'orders', messageId: first.id, ...note }],
      )
      // What it kept back goes on.
      assert.equal((await outbox.relay(10, broker.publish)).published, 1)
      assert.deepEqual(broker.ids(), [alone.id, second.id])
      await other.close()
    },
  )

  about(
    'what a relay is publishing again is on its way, and not stuck',
    async (subject, outbox) => {
      const other = await subject.connect()
      const one = envelope()
      await add(subject, outbox, [one])
      await outbox.relay(10, async (rows) => rows.map(() => refused('conflict')))
      assert.deepEqual(await outbox.stuck?.retry('orders', [one.id]), [one.id])
      const broker = recorder()
      const pass = await outbox.relay(10, async (rows) => {
        const note = { actor: 'cli:ada', reason: 'impatient' }
        assert.deepEqual(await other.stuck?.retry('orders', [one.id]), [])
        assert.deepEqual(await other.stuck?.discard('orders', [one.id], note), [])
        return await broker.publish(rows)
      })
      assert.deepEqual([pass.published, broker.ids()], [1, [one.id]])
      assert.deepEqual(await other.stuck?.audit('orders', 10), [])
      await other.close()
    },
  )

  about('the time that a row waited is taken off its delay', async (subject, outbox) => {
    const delayMs = 3_600_000
    await add(subject, outbox, [
      envelope({ delayMs }),
      envelope({ delayMs: 1 }),
      envelope({ delayMs: 0 }),
    ])
    await until('time to pass', async () => (await outbox.lag()).ageMs > 5)
    const broker = recorder()
    await outbox.relay(10, broker.publish)
    const [long = -1, short = -1, none = -1] = broker.rows.map((row) => row.envelope.delayMs)
    assert.ok(long < delayMs && long > delayMs - 60_000, String(long))
    assert.deepEqual([short, none], [0, 0])
  })

  about('an id is stored once', async (subject, outbox) => {
    const one = envelope()
    const user = await subject.begin()
    const rows = await rowsIn(outbox, user.tx)
    assert.deepEqual(await rows.add('orders', []), [])
    const sent = await rows.add('orders', [one, envelope(), one])
    assert.deepEqual(
      sent.map((outcome) => outcome.ok && outcome.duplicate),
      [false, false, true],
    )
    assert.deepEqual(await rows.add('orders', [one]), [{ ok: true, id: one.id, duplicate: true }])
    assert.deepEqual(await rows.add('others', [one]), [{ ok: true, id: one.id, duplicate: false }])
    await user.commit()
    assert.equal((await outbox.lag()).rows, 3)
  })

  about('a transaction of another database is not taken', async (subject, outbox) => {
    for (const tx of subject.foreign()) assert.equal(await outbox.transaction(tx), undefined)
    const user = await subject.begin()
    const found = outbox.transaction(user.tx)
    assert.equal((await found)?.synchronous, subject.kind === 'sqlite')
    assert.equal(found instanceof Promise, subject.kind !== 'sqlite')
    await user.rollback()
  })

  about(
    'a row that failed comes back with the same id, after growing gaps',
    async (subject, outbox) => {
      const one = envelope()
      const other = envelope()
      await add(subject, outbox, [one, other])
      const broker = recorder((row) => row.envelope.id === one.id)
      const first = await outbox.relay(10, broker.publish)
      assert.deepEqual([first.taken, first.published, first.failed.length], [2, 1, 1])
      assert.deepEqual(await outbox.relay(10, broker.publish), nothing)
      await until(
        'the row to be tried again',
        async () => (await outbox.relay(10, broker.publish)).taken > 0,
      )
      const [failure] = first.failed
      assert.deepEqual(
        [failure?.messageId, failure?.tries, failure?.fault.code],
        [one.id, 1, 'unavailable'],
      )
      assert.ok(
        failure && failure.retryInMs >= 375 && failure.retryInMs <= 500,
        String(failure?.retryInMs),
      )
      assert.deepEqual(
        broker.rows.map((row) => [row.envelope.id, row.tries]),
        [
          [one.id, 0],
          [other.id, 0],
          [one.id, 1],
        ],
      )
      assert.equal((await outbox.lag()).rows, 1)
    },
  )

  about('a publish that throws fails its rows, which stay', async (subject, outbox) => {
    await add(subject, outbox, [envelope(), envelope()])
    const pass = await outbox.relay(10, async () => {
      throw new Error('no broker')
    })
    assert.deepEqual([pass.taken, pass.published, pass.failed.length], [2, 0, 2])
    assert.equal((await outbox.lag()).rows, 2)
    const few = recorder()
    await add(subject, outbox, [envelope(), envelope()])
    const partly = await outbox.relay(10, async (rows) => (await few.publish(rows)).slice(0, 1))
    // On a slow machine the two that failed are due again already.
    assert.deepEqual([partly.published, partly.failed.length], [1, partly.taken - 1])
    assert.ok(partly.taken >= 2)
    assert.equal((await outbox.lag()).rows, 3)
  })

  about(
    'a failed row keeps the later ones of its key back, and no others',
    async (subject, outbox) => {
      const [a1, a2, a3] = ['1', '2', '3'].map(() => envelope({ orderingKey: 'a' }))
      const [b1, b2] = ['1', '2'].map(() => envelope({ orderingKey: 'b' }))
      const free = envelope()
      if (!a1 || !a2 || !a3 || !b1 || !b2) throw new Error('no rows')
      await add(subject, outbox, [a1, b1, a2, free, a3, b2])
      let broken = true
      const broker = recorder((row) => broken && row.envelope.id === a2.id)
      const first = await outbox.relay(50, broker.publish)
      assert.equal(first.published, 4)
      assert.deepEqual(new Set(broker.taken()), new Set([a1.id, b1.id, b2.id, free.id]))
      assert.deepEqual(await outbox.relay(50, broker.publish), nothing)
      broken = false
      await until('the key to go on', async () => {
        await outbox.relay(50, broker.publish)
        return (await outbox.lag()).rows === 0
      })
      assert.deepEqual(broker.taken('a'), [a1.id, a2.id, a3.id])
      assert.equal(broker.ids().filter((id) => id === a3.id).length, 1)
    },
  )

  about(
    'two relays at once take different rows, and a key has one of them',
    async (subject, outbox) => {
      const other = await subject.connect()
      const keys = Array.from({ length: 6 }, (_, n) => envelope({ orderingKey: `k-${n % 2}` }))
      await add(subject, outbox, [...keys, envelope(), envelope()])
      const late = envelope({ orderingKey: 'k-0' })
      const second = recorder()
      const first = recorder()
      const pass = await outbox.relay(50, async (rows) => {
        // The first rows of both keys are being published: nothing of these keys may go to anybody else.
        if (first.rows.length === 0) {
          await add(subject, outbox, [late, envelope()])
          const taken = await other.relay(50, second.publish)
          assert.equal(taken.taken, 1)
          assert.deepEqual(second.taken('k-0'), [])
        }
        return await first.publish(rows)
      })
      assert.equal(pass.published, 8)
      await other.relay(50, second.publish)
      assert.deepEqual(second.taken('k-0'), [late.id])
      assert.equal((await outbox.lag()).rows, 0)
      await other.close()
    },
  )

  about(
    'a row that is added while others are published is not removed with them',
    async (subject, outbox) => {
      const early = envelope({ orderingKey: 'k' })
      const late = envelope({ orderingKey: 'k' })
      await add(subject, outbox, [early])
      const broker = recorder()
      await outbox.relay(50, async (rows) => {
        await add(subject, outbox, [late])
        return await broker.publish(rows)
      })
      assert.equal((await outbox.lag()).rows, 1)
      await outbox.relay(50, broker.publish)
      assert.deepEqual(broker.ids(), [early.id, late.id])
    },
  )

  about(
    'a pass takes no more than it was asked for, and every key has its turn',
    async (subject, outbox) => {
      const all = Array.from({ length: 40 }, (_, n) =>
        envelope(n % 2 === 0 ? { orderingKey: `k-${n % 8}` } : {}),
      )
      await add(subject, outbox, all)
      const broker = recorder()
      for (let passes = 0; (await outbox.lag()).rows > 0; passes++) {
        const { taken } = await outbox.relay(6, broker.publish)
        assert.ok(taken > 0 && taken <= 6, String(taken))
        assert.ok(passes < 40)
      }
      assert.deepEqual([...broker.ids()].sort(), all.map(({ id }) => id).sort())
      for (const key of ['k-0', 'k-2', 'k-4', 'k-6']) {
        const sent = all.filter(({ orderingKey }) => orderingKey === key).map(({ id }) => id)
        assert.deepEqual(broker.taken(key), sent)
      }
    },
  )

  about('queues that name one ordering key go side by side', async (subject, outbox) => {
    const [order, mail] = [envelope({ orderingKey: 'k' }), envelope({ orderingKey: 'k' })]
    await add(subject, outbox, [order], 'orders')
    await add(subject, outbox, [mail], 'mails')
    const broker = recorder(({ queue }) => queue === 'orders')
    const { published, failed } = await outbox.relay(10, broker.publish)
    assert.deepEqual([published, failed.map(({ messageId }) => messageId)], [1, [order.id]])
    assert.deepEqual(broker.taken(), [mail.id])
  })

  about(
    'rows of keys that would fill a pass leave half of it to those without',
    async (subject, outbox) => {
      const keyed = Array.from({ length: 30 }, (_, n) => envelope({ orderingKey: `k-${n % 2}` }))
      await add(subject, outbox, [...keyed, ...Array.from({ length: 10 }, () => envelope())])
      const broker = recorder()
      assert.equal((await outbox.relay(8, broker.publish)).taken, 8)
      const withKey = broker.rows.filter((row) => row.envelope.orderingKey !== undefined)
      assert.equal(withKey.length, 4)
    },
  )

  about('what fails again and again goes behind what was never tried', async (subject, outbox) => {
    const bad = Array.from({ length: 5 }, () => envelope())
    const good = Array.from({ length: 5 }, () => envelope())
    await add(subject, outbox, bad)
    const isBad = new Set(bad.map(({ id }) => id))
    const broker = recorder((row) => isBad.has(row.envelope.id))
    assert.equal((await outbox.relay(5, broker.publish)).failed.length, 5)
    await add(subject, outbox, good)
    const addedAt = Date.now()
    await until('the next ms', () => Date.now() > addedAt)
    assert.equal((await outbox.stuck?.retry('orders', [...isBad]))?.length, 5)
    await outbox.relay(5, broker.publish)
    assert.deepEqual([...broker.taken()].sort(), good.map(({ id }) => id).sort())
  })

  about('listeners hear of added rows', async (subject, outbox) => {
    let heard = 0
    const stop = outbox.onAdded?.(() => void heard++)
    await add(subject, outbox, [envelope()])
    await until('the listener to hear', () => heard === 1)
    stop?.()
    await add(subject, outbox, [envelope()])
    assert.equal(heard, 1)
  })
}

const nothing = { taken: 0, published: 0, failed: [] }

async function rowsIn(
  outbox: Outbox,
  tx: unknown,
): Promise<NonNullable<Awaited<ReturnType<Outbox['transaction']>>>> {
  const rows = await outbox.transaction(tx)
  if (rows === undefined)
    throw new Error('the outbox does not know the transaction of its own database')
  return rows
}

interface Recorder {
  readonly publish: Publish
  /** In the order in which they were handed out. */
  readonly rows: readonly OutboxRow[]
  ids(): readonly string[]
  /** Ids of those that were not refused, of one key when it is given. */
  taken(orderingKey?: string): readonly string[]
}

function recorder(refuses: (row: OutboxRow) => boolean = () => false): Recorder {
  const rows: OutboxRow[] = []
  const taken: OutboxRow[] = []
  return {
    rows,
    ids: () => rows.map((row) => row.envelope.id),
    taken: (key) =>
      taken
        .filter((row) => key === undefined || row.envelope.orderingKey === key)
        .map((row) => row.envelope.id),
    publish: async (batch) =>
      batch.map((row): Sent => {
        rows.push(row)
        const refused = refuses(row)
        if (!refused) taken.push(row)
        return refused
          ? { ok: false, fault: { code: 'unavailable', retryable: true, outcome: 'notApplied' } }
          : { ok: true, id: row.envelope.id, duplicate: false }
      }),
  }
}

function plainRow({ queue, tries, envelope: { body, ...rest } }: OutboxRow): object {
  return { queue, tries, envelope: { ...rest, body: new Uint8Array(body) } }
}
