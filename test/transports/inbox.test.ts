import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { InboxWork } from 'millrace/inbox'
import { storedKey } from '../../src/inbox/key.ts'
import { isPromise } from '../../src/model/maybe-promise.ts'
import {
  DAY_MS,
  type InboxSubject,
  inboxContext,
  postgresInboxClients,
  sqliteInboxClients,
} from './inbox-subjects.ts'
import { NO_SERVER, postgresServers } from './postgres-servers.ts'
import { until } from './until.ts'

if (postgresServers().length === 0) test('inbox on postgres', { skip: NO_SERVER }, () => {})

const LEASE_MS = 10_000

for (const { name, open } of [...sqliteInboxClients, ...postgresInboxClients()]) {
  const about = (what: string, check: (subject: InboxSubject) => Promise<void>): void =>
    void test(`${name}: ${what}`, async () => {
      const subject = await open()
      try {
        await check(subject)
      } finally {
        await subject.dispose()
      }
    })

  about('effect, key and ack commit together', async (subject) => {
    const inbox = await subject.connect()
    const outcome = await inbox.run(key('a'), work(subject, 7))
    assert.deepEqual(outcome, { kind: 'committed', value: 7 })
    assert.deepEqual(await subject.effects(), [7])
    assert.deepEqual(await inbox.seen([key('b'), key('a'), key('a', 'other')]), [
      false,
      true,
      false,
    ])
    await inbox.close()
  })

  about('two runs of a key at the same time have one effect', async (subject) => {
    const inbox = await subject.connect()
    const other = await subject.connect()
    const outcomes = await Promise.all(
      [inbox, other, inbox, other].map((one, n) => one.run(key('same'), work(subject, n))),
    )
    const kinds = outcomes.map(({ kind }) => kind).sort()
    assert.deepEqual(kinds, ['committed', 'duplicate', 'duplicate', 'duplicate'])
    assert.equal((await subject.effects()).length, 1)
    await inbox.close()
    await other.close()
  })

  about('an error of the effect rolls everything back and stays what it is', async (subject) => {
    const inbox = await subject.connect()
    const boom = { not: 'an Error' }
    const failing: InboxWork<unknown, number> = {
      ...work(subject, 1),
      effect: (tx) =>
        after(subject.effect(tx, 1), () => {
          throw boom
        }),
    }
    await assert.rejects(inbox.run(key('a'), failing), (error) => error === boom)
    assert.deepEqual(await subject.effects(), [])
    assert.deepEqual(await inbox.seen([key('a')]), [false])
    assert.equal((await inbox.run(key('a'), work(subject, 2))).kind, 'committed')
    await inbox.close()
  })

  about('a run that is over when its transaction may begin does nothing', async (subject) => {
    const inbox = await subject.connect()
    const late: InboxWork<unknown, number> = { ...work(subject, 1), isOver: () => true }
    assert.deepEqual(await inbox.run(key('a'), late), { kind: 'lost' })
    assert.deepEqual(await subject.effects(), [])
    assert.deepEqual(await inbox.seen([key('a')]), [false])
    const running = { ...work(subject, 2), isOver: () => false }
    assert.equal((await inbox.run(key('a'), running)).kind, 'committed')
    await inbox.close()
  })

  about('a lost claim rolls everything back', async (subject) => {
    const inbox = await subject.connect()
    const outcome = await inbox.run(key('a'), { ...work(subject, 1), last: () => false })
    assert.deepEqual(outcome, { kind: 'lost' })
    assert.deepEqual(await subject.effects(), [])
    assert.deepEqual(await inbox.seen([key('a')]), [false])
    await inbox.close()
  })

  about('the last statement sees the effect and the key', async (subject) => {
    const inbox = await subject.connect()
    const order: string[] = []
    await inbox.run(key('a'), {
      leaseMs: LEASE_MS,
      effect: () => void order.push('effect'),
      last: () => order.push('last') > 0,
    })
    assert.deepEqual(order, ['effect', 'last'])
    await assert.rejects(
      inbox.run(key('b'), {
        ...work(subject, 1),
        last: () => {
          throw new Error('the ack failed')
        },
      }),
      /the ack failed/,
    )
    assert.deepEqual(await subject.effects(), [])
    await inbox.close()
  })

  about('an effect that ends the transaction itself is told so', async (subject) => {
    const inbox = await subject.connect()
    for (const [at, how] of ['ROLLBACK', 'COMMIT'].entries()) {
      const ending: InboxWork<unknown, unknown> = {
        leaseMs: LEASE_MS,
        effect: (tx) => subject.execute(tx, how),
        last: () => true,
      }
      await assert.rejects(inbox.run(key(`${at}`), ending), {
        code: 'MILLRACE_FOREIGN_TRANSACTION',
      })
      assert.deepEqual(await inbox.seen([key(`${at}`)]), [false])
    }
    assert.equal((await inbox.run(key('next'), work(subject, 1))).kind, 'committed')
    await inbox.close()
  })

  about('any string is a key', async (subject) => {
    const inbox = await subject.connect()
    const names = [
      '\0',
      'a\0',
      '\ud800',
      '\udbff',
      'ключ',
      '\'"\\{},',
      ' ',
      'x'.repeat(1024),
      'x'.repeat(1023),
      'sha256:',
      'NULL',
      '',
    ]
    await inbox.record(names.slice(0, 6).map((name) => key(name)))
    for (const name of names.slice(6)) {
      assert.equal((await inbox.run(key(name), work(subject, 1))).kind, 'committed')
    }
    assert.deepEqual(
      await inbox.seen(names.map((name) => key(name))),
      names.map(() => true),
    )
    // The last one is how another key is kept.
    assert.deepEqual(
      await inbox.seen(
        ['a', '\ud801', '\ufffd', 'null', 'x', storedKey('ключ')].map((name) => key(name)),
      ),
      [false, false, false, false, false, false],
    )
    await inbox.close()
  })

  about('keys handled without a transaction are recorded once', async (subject) => {
    const inbox = await subject.connect()
    await inbox.record([])
    await inbox.record([key('b'), key('a'), key('b')])
    await inbox.record([key('c'), key('a')])
    assert.equal(await subject.recorded(), 3)
    assert.deepEqual(await inbox.run(key('a'), work(subject, 1)), { kind: 'duplicate' })
    assert.deepEqual(await subject.effects(), [])
    assert.deepEqual(await inbox.seen([]), [])
    await inbox.close()
  })

  about('an expired key can be used again, and is pruned in small batches', async (subject) => {
    const brief = await subject.connect({ ttlMs: 30 })
    const names = ['a', 'b', 'c', 'd', 'e'].map((name) => key(name))
    await brief.record(names)
    await brief.run(key('f'), work(subject, 1))
    await until(
      'the keys to expire',
      async () => !(await brief.seen([...names, key('f')])).some(Boolean),
    )
    const lasting = await subject.connect()
    assert.equal((await lasting.run(key('f'), work(subject, 2))).kind, 'committed')
    await lasting.record([key('a')])
    assert.equal(await brief.prune(3), 3)
    assert.equal(await brief.prune(3), 1)
    assert.equal(await brief.prune(3), 0)
    assert.deepEqual(await lasting.seen([key('a'), key('b'), key('f')]), [true, false, true])
    await brief.close()
    await lasting.close()
  })

  about('everybody on the database has the same identity', async (subject) => {
    const inbox = await subject.connect()
    const other = await subject.connect()
    assert.equal(inbox.databaseId, other.databaseId)
    assert.match(inbox.databaseId, /^(sqlite|postgres):./)
    assert.equal(inbox.ttlMs, 7 * DAY_MS)
    await other.close()
    await other.close()
    await assert.rejects(other.seen([key('a')]), { code: 'MILLRACE_CLOSED' })
    await assert.rejects(other.run(key('a'), work(subject, 1)), { code: 'MILLRACE_CLOSED' })
    assert.deepEqual(await inbox.seen([key('a')]), [false])
    await inbox.close()
  })
}

for (const { name, open } of [
  ...sqliteInboxClients.slice(0, 1),
  ...postgresInboxClients().slice(0, 1),
]) {
  test(`${name}: a memory shorter than a duplicate can be late is refused, with both numbers`, async () => {
    const subject = await open()
    const needed = inboxContext().neededTtlMs
    assert.equal(needed, 1)
    await assert.rejects(subject.connect({ ttlMs: 0.5 }), (error: Error) => {
      assert.match(error.message, /ttlMs is 0\.5 ms .*need 1 ms .*redriveWindowMs/)
      return 'code' in error && error.code === 'MILLRACE_INVALID_OPTIONS'
    })
    const enough = await subject.connect({ ttlMs: needed })
    assert.equal(enough.ttlMs, needed)
    await enough.close()
    await subject.dispose()
  })
}

function key(name: string, queue = 'orders'): { readonly queue: string; readonly key: string } {
  return { queue, key: name }
}

function work(subject: InboxSubject, n: number): InboxWork<unknown, number> {
  return {
    leaseMs: LEASE_MS,
    effect: (tx) => after(subject.effect(tx, n), () => n),
    last: () => true,
  }
}

function after<T>(value: void | Promise<void>, next: () => T): T | Promise<T> {
  return isPromise(value) ? value.then(next) : next()
}
