import assert from 'node:assert/strict'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { createMillrace, defineQueue, MillraceError } from 'millrace'
import { type InboxConnector, sqliteInbox } from 'millrace/inbox'
import { memory } from 'millrace/memory'
import { sqliteOutbox } from 'millrace/outbox'
import { sqlite } from 'millrace/sqlite'
import { memoryStore } from 'millrace/store'
import { z } from 'zod'
import { OptionsError } from '../../src/model/errors.ts'
import type { MillraceOptions } from '../../src/runtime/create.ts'
import type { Connector, Topology } from '../../src/transport/transport.ts'
import { bare } from '../layers/bare.ts'

const orders = defineQueue({ name: 'orders', owner: 'team-a', payload: z.string() })
const ordered = defineQueue({
  ...{ name: 'ordered', owner: 'team-a', payload: z.string() },
  orderingKey: (payload: string) => payload,
  onDead: 'continue',
})

/** A broker that lacks much, with a queue that is not what it should be. */
function broker(seen: string[] = []): Connector {
  const below = memory()
  const topology: Topology = {
    ensure: async () => {
      seen.push('ensure')
      throw new OptionsError('bare', ['queue "orders" keeps messages for 60 s; raise it'])
    },
    differences: async () => ['queue "orders" keeps messages for 60 s; raise it'],
  }
  return {
    name: 'bare',
    connect: async (context) => {
      seen.push(`connect with migrate ${context.migrate}`)
      return { ...bare(await below.connect(context)), name: 'bare', topology }
    },
  }
}

function shortInbox(): InboxConnector<DatabaseSync> {
  return sqliteInbox({ db: new DatabaseSync(':memory:'), ttlMs: 1_000 })
}

async function refusal(options: Partial<MillraceOptions> & object): Promise<OptionsError> {
  const error = await createMillrace({ transport: broker(), queues: [orders], ...options }).then(
    () => undefined,
    (cause: unknown) => cause,
  )
  assert.ok(error instanceof OptionsError, String(error))
  return error
}

test('Wrong options, a missing store, an order that cannot be kept, a topology that differs and a short inbox are one error.', async () => {
  const seen: string[] = []
  const error = await refusal({
    transport: broker(seen),
    queues: [orders, ordered],
    inbox: shortInbox(),
    migrate: 'maybe',
    wokers: [],
  } as never)
  assert.equal(error.code, 'MILLRACE_INVALID_OPTIONS')
  const wanted = [
    'unknown option "wokers", did you mean "workers"?',
    'migrate: expected "auto" or "check"',
    'store: bare cannot keep ',
    'queue "ordered": orderingKey: bare keeps no order by key; use ',
    'transport bare: queue "orders" keeps messages for 60 s; raise it',
    'inbox sqlite: ttlMs is 1000 ms',
  ]
  for (const part of wanted) {
    assert.equal(error.problems.filter((one) => one.includes(part)).length, 1, part)
  }
  assert.equal(error.problems.length, wanted.length)
  for (const problem of error.problems) assert.ok(error.message.includes(problem))
  assert.ok(!error.message.includes('\n'))
  // Looked at, and nothing made.
  assert.deepEqual(seen, ['connect with migrate check'])
})

test('Ageing and fairness where there is no such thing are refused, each with an alternative.', async () => {
  const ageing = defineQueue({
    ...{ name: 'ageing', owner: 'team-a', payload: z.string() },
    ageingMs: 1_000,
    fairBy: (payload: string) => payload,
  })
  const transport: Connector = {
    name: 'bare',
    connect: async (context) => {
      const below = await memory().connect(context)
      const { fairness: _none, ...traits } = below.traits
      return { ...below, name: 'bare', traits: { ...traits, priorities: 1 } }
    },
  }
  const { problems } = await refusal({ transport, queues: [ageing] })
  assert.ok(
    problems.includes(
      'queue "ageing": ageingMs: bare knows no priorities that could age; leave it out, or use memory, SQLite, Postgres or Redis as the transport',
    ),
    problems.join(),
  )
  assert.equal(
    problems.filter((one) =>
      one.startsWith('queue "ageing": fairBy: bare hands out in its own order'),
    ).length,
    1,
  )
})

test('What one part alone refuses is its own error.', async () => {
  const error = await refusal({ store: memoryStore() })
  assert.equal(error.message, 'bare: queue "orders" keeps messages for 60 s; raise it')
  const short = await refusal({
    transport: memory(),
    inbox: shortInbox(),
  })
  assert.match(short.message, /^sqliteInbox: ttlMs is 1000 ms/)
})

test('A topology that differs and a short inbox are one error, too.', async () => {
  const inbox = shortInbox()
  const { problems } = await refusal({ store: memoryStore(), inbox })
  assert.deepEqual(
    problems.map((one) => one.split(' ')[0]),
    ['transport', 'inbox'],
  )
})

test('A backend that is away hides no wrong option, and it is said that it was not asked.', async () => {
  const away: Connector = {
    name: 'faraway',
    connect: async () => {
      throw new MillraceError('MILLRACE_UNAVAILABLE', 'faraway cannot be opened (ECONNREFUSED)')
    },
  }
  const { problems } = await refusal({ transport: away, migrate: 'maybe' as never })
  assert.deepEqual(problems, [
    'migrate: expected "auto" or "check", got "maybe"',
    'transport faraway: faraway cannot be opened (ECONNREFUSED); what else it asks for is not known yet',
  ])
  await assert.rejects(createMillrace({ transport: away, queues: [orders] }), {
    code: 'MILLRACE_UNAVAILABLE',
    message: 'faraway cannot be opened (ECONNREFUSED)',
  })
})

test('A schema that start-up would have made is no refusal; one that it must not make is.', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-refusals-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  const transport = sqlite({ file: join(folder, 'a.db') })
  const wrong = { transport, redriveWindowMs: -1 }
  const [problem, ...more] = (await refusal(wrong)).problems
  assert.match(problem ?? '', /^redriveWindowMs: /)
  assert.deepEqual(more, [])
  const checked = await refusal({ ...wrong, migrate: 'check' })
  assert.equal(checked.problems.length, 2)
  assert.match(checked.problems[1] ?? '', /^transport sqlite: file .* does not exist/)
  await assert.rejects(createMillrace({ transport, queues: [orders], migrate: 'check' }), {
    code: 'MILLRACE_SCHEMA_OUTDATED',
  })
})

test('Schemas that are all outdated are one error with their code.', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-refusals-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  const app = createMillrace({
    transport: sqlite({ file: join(folder, 'a.db') }),
    inbox: sqliteInbox({ file: join(folder, 'b.db') }),
    outbox: sqliteOutbox({ file: join(folder, 'c.db') }),
    queues: [orders],
    migrate: 'check',
  })
  await assert.rejects(app, {
    code: 'MILLRACE_SCHEMA_OUTDATED',
    message:
      /^transport sqlite: file ".*a\.db" .*; inbox sqlite: .*file ".*b\.db" .*; outbox sqlite: .*file ".*c\.db" /,
  })
  assert.deepEqual(await readdir(folder), [])
})
