import assert from 'node:assert/strict'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { type TestContext, test } from 'node:test'
import { createMillrace, defineQueue, PermanentError, TransientError } from 'millrace'
import { sqlite } from 'millrace/sqlite'
import { z } from 'zod'
import { actorOf } from '../../src/cli/actor.ts'
import { ordersConfig, type Project, project } from './cli-project.ts'

const orders = defineQueue({
  name: 'orders',
  owner: 'team-shop',
  payload: z.object({ orderId: z.string() }),
  retry: { attempts: 2, baseMs: 1, maxMs: 1 },
})

async function shop(t: TestContext): Promise<Project> {
  const made = await project(t)
  await made.write('millrace.config.ts', ordersConfig(made.folder))
  assert.equal((await made.run('migrate')).code, 0)
  return made
}

/** Sends these orders and lets them die: those that begin with p as permanent, the others as transient. */
async function bury({ folder }: Project, orderIds: readonly string[]): Promise<readonly string[]> {
  let dead = 0
  const all = Promise.withResolvers<void>()
  const app = await createMillrace({
    transport: sqlite({ file: join(folder, 'orders.db') }),
    queues: [orders],
    logger: { debug() {}, info() {}, warn() {}, error() {} },
    onDeadLetter: () => ++dead === orderIds.length && all.resolve(),
  })
  app.work(orders, ({ payload }) => {
    if (payload.orderId.startsWith('p')) throw new PermanentError('no such customer')
    throw new TransientError('the shop is closed, password=hunter2')
  })
  const sent = await app.sendBatch(
    orders,
    orderIds.map((orderId) => ({ orderId })),
  )
  await app.start()
  await all.promise
  await app.close()
  return sent.map(({ id }) => id)
}

test('send: from the command line and from stdin, with keys, delay and priority', async (t) => {
  const { run, runWithInput } = await shop(t)
  const first = await run('send', 'orders', '{"orderId":"a"}', '--key', 'k', '--priority', '9')
  assert.equal(first.code, 0)
  const id = first.stdout.trim()
  assert.deepEqual(
    JSON.parse((await run('send', 'orders', '{"orderId":"a"}', '--key', 'k', '--json')).stdout),
    { id, duplicate: true },
  )
  const conflict = await run('send', 'orders', '{"orderId":"b"}', '--key', 'k')
  assert.equal(conflict.code, 1)
  assert.match(conflict.stderr, /\[MILLRACE_IDEMPOTENCY_CONFLICT\]\n$/)
  assert.equal(
    (await runWithInput('{"orderId":"b"}\n', 'send', 'orders', '-', '--delay', '1h')).code,
    0,
  )
  assert.equal((await run('send', 'orders', '{"orderId":"c"}', '--dedupe-key', 'd')).code, 0)
  assert.match(
    (await run('send', 'orders', '{"orderId":"x"}', '--dedupe-key', 'd')).stdout,
    /duplicate: nothing was stored/,
  )
  const { depth, scheduled } = JSON.parse(
    (await run('stats', 'orders', '--json')).stdout,
  ) as Record<string, unknown>
  assert.deepEqual([depth, scheduled], [2, 1])
  const shown = JSON.parse((await run('message', 'orders', id, '--json')).stdout) as Record<
    string,
    unknown
  >
  assert.deepEqual(
    [shown['state'], shown['priority'], shown['payload']],
    ['ready', 9, { orderId: 'a' }],
  )
  assert.match((await run('message', 'orders', id)).stdout, /^state +ready$/m)
  // With = it is said to be the value.
  assert.equal((await run('send', 'orders', '{"orderId":"a"}', '--key=--odd')).code, 0)
})

test('send: what is wrong with the payload is said, and nothing is stored', async (t) => {
  const { run, runWithInput } = await shop(t)
  const refused = await run('send', 'orders', '{"orderId":3}')
  assert.equal(refused.code, 1)
  assert.match(refused.stderr, /orderId: .*\[MILLRACE_INVALID_PAYLOAD\]\n$/)
  assert.match(
    (await run('send', 'orders', '{"orderId"')).stderr,
    /^millrace: the payload is not JSON: /,
  )
  assert.match(
    (await run('send', 'orders', '{"orderId":12345678901234567890}')).stderr,
    /^millrace: the payload: the number of 20 characters at character 11 cannot be kept: .* send it as a string/,
  )
  const inexact = await runWithInput(
    '{"orderId":"a"}\n{"orderId":12345678901234567890}\n',
    ...['send', 'orders', '--batch'],
  )
  assert.equal(inexact.code, 2)
  assert.match(inexact.stderr, /^millrace: line 2: the number of 20 characters at character 11/)
  const lines = await runWithInput(
    '{"orderId":"a"}\n\n{"order":"b"}\n',
    'send',
    'orders',
    '--batch',
  )
  assert.equal(lines.code, refused.code)
  assert.match(
    lines.stderr,
    /^millrace: line 3 does not fit the schema of queue "orders": orderId: .*\[MILLRACE_INVALID_PAYLOAD\]\nmillrace: nothing was stored\n$/,
  )
  assert.match((await run('stats', 'orders', '--json')).stdout, /"depth":0/)
})

test('send --batch: a payload that is too large is named by its line, not by its place in a step', async (t) => {
  const { runWithInput } = await shop(t)
  const good = Array.from({ length: 501 }, (_, i) => JSON.stringify({ orderId: `o${i}` }))
  const large = JSON.stringify({ orderId: 'x'.repeat(17_000_000) })
  const sent = await runWithInput([...good, '', large].join('\n'), 'send', 'orders', '--batch')
  assert.equal(sent.code, 1)
  assert.match(
    sent.stderr,
    /^millrace: line 503: .* has 170000\d\d bytes.*\[MILLRACE_PAYLOAD_TOO_LARGE\]\nmillrace: lines 1 to 500 are stored, those after are not\n$/,
  )
})

test('send: what is not UTF-8 on standard input is refused, where nothing else could be sent than another text', async (t) => {
  const { run, runWithInput } = await shop(t)
  const latin1 = (text: string): Uint8Array => Buffer.from(text, 'latin1')
  const one = await runWithInput(latin1('{"orderId":"a\xff"}'), 'send', 'orders', '-')
  assert.deepEqual([one.code, one.stdout], [2, ''])
  assert.match(one.stderr, /^millrace: standard input is not UTF-8 text; [^\n]*\n$/)
  const lines = latin1('{"orderId":"a"}\n{"orderId":"b\xff"}\n')
  const batch = await runWithInput(lines, 'send', 'orders', '--batch')
  assert.equal(batch.code, 2)
  assert.match(
    batch.stderr,
    /^millrace: line 2 of stdin is not UTF-8 text; [^\n]*\nmillrace: nothing was stored\n$/,
  )
  assert.match((await run('stats', 'orders', '--json')).stdout, /"depth":0/)
})

test('send: nothing on standard input is wrong use, not a success', async (t) => {
  const { runWithInput, run } = await shop(t)
  for (const rest of [['--batch'], ['-']]) {
    for (const input of ['', ' \n\n']) {
      const { code, stdout, stderr } = await runWithInput(input, 'send', 'orders', ...rest)
      assert.deepEqual([code, stdout], [2, ''])
      assert.match(stderr, /^millrace: no message on standard input/)
    }
  }
  assert.match((await run('send', 'orders', '')).stderr, /the payload is empty/)
})

test('send --batch: steps of 500, each all or nothing, with what was stored on record', async (t) => {
  const { run, runWithInput } = await shop(t)
  const good = Array.from({ length: 1_200 }, (_, i) => JSON.stringify({ orderId: `o${i}` }))
  const sent = await runWithInput(good.join('\n'), 'send', 'orders', '--batch')
  assert.deepEqual([sent.code, sent.stdout], [0, 'stored 1200\n'])
  const broken = await runWithInput(
    [...good.slice(0, 700), '{"orderId":'].join('\n'),
    'send',
    'orders',
    '--batch',
    '--json',
  )
  assert.equal(broken.code, 2)
  const { error } = JSON.parse(broken.stderr) as { error: { message: string; remark: string } }
  assert.match(error.message, /^line 701 is not JSON/)
  assert.equal(error.remark, 'lines 1 to 500 are stored, those after are not')
  assert.equal(broken.stdout.trim().split('\n').length, 500)
  assert.match((await run('stats', 'orders', '--json')).stdout, /"depth":1700/)
  assert.match(
    (await runWithInput('', 'send', 'orders', '--batch', '--key', 'k')).stderr,
    /one key belongs to one message/,
  )
})

test('purge throws away what waits, when somebody is sure, and leaves the dead', async (t) => {
  const { run, runWithInput } = await shop(t)
  const lines = ['a', 'b', 'c'].map((orderId) => JSON.stringify({ orderId }))
  await runWithInput(lines.join('\n'), 'send', 'orders', '--batch')
  const unsure = await run('purge', 'orders')
  assert.deepEqual([unsure.code, unsure.stdout], [2, ''])
  assert.match(unsure.stderr, /^millrace: purge needs --yes: what waits in "orders" is gone/)
  const purged = await run('purge', 'orders', '--yes')
  assert.deepEqual([purged.code, purged.stdout], [0, 'purged orders: 3 removed\n'])
  const again = await run('purge', 'orders', '--yes', '--json')
  assert.deepEqual(JSON.parse(again.stdout), { queue: 'orders', removed: 0 })
  assert.match((await run('stats', 'orders', '--json')).stdout, /"depth":0/)
  assert.match((await run('purge', 'order', '--yes')).stderr, /did you mean "orders"/)
})

test('cancel removes what waits; pause and resume are remembered and change nothing else', async (t) => {
  const { run } = await shop(t)
  const id = (await run('send', 'orders', '{"orderId":"a"}')).stdout.trim()
  assert.equal((await run('pause', 'orders')).stdout, 'paused orders\n')
  const paused = async (): Promise<unknown> =>
    (JSON.parse((await run('stats', 'orders', '--json')).stdout) as { paused: boolean }).paused
  assert.equal(await paused(), true)
  await run('dlq', 'ls', 'orders')
  assert.equal((await run('cancel', 'orders', id)).code, 0)
  assert.equal(await paused(), true)
  assert.equal((await run('resume', 'orders')).code, 0)
  assert.equal(await paused(), false)
  assert.equal((await run('cancel', 'orders', id)).code, 1)
  assert.equal((await run('message', 'orders', id)).code, 1)
})

test('dlq: list by class and page, show, redrive one, a class, all, discard', async (t) => {
  const made = await shop(t)
  const { run } = made
  const ids = await bury(made, ['p1', 'p2', 't1', 't2', 't3'])
  const list = async (
    ...args: readonly string[]
  ): Promise<{ items: { id: string }[]; cursor: string | null }> =>
    JSON.parse((await run('dlq', 'ls', 'orders', '--json', ...args)).stdout)
  assert.equal((await list()).items.length, 5)
  assert.deepEqual(
    (await list('--class', 'permanent')).items.map(({ id }) => id).sort(),
    ids.slice(0, 2).sort(),
  )
  const first = await list('--limit', '3')
  const rest = await list('--limit', '3', '--cursor', first.cursor ?? '')
  assert.deepEqual([...first.items, ...rest.items].map(({ id }) => id).sort(), [...ids].sort())
  assert.equal(rest.cursor, null)
  const text = await run('dlq', 'ls', 'orders', '--limit', '3')
  assert.match(text.stdout, /^ID +DEAD AT +CLASS +ATTEMPTS +REASON\n/)
  assert.ok(text.stderr.includes(`more: --cursor ${first.cursor}`))

  const shown = await run('dlq', 'show', 'orders', ids[2] ?? '')
  assert.match(shown.stdout, /^owner +team-shop$/m)
  assert.match(
    shown.stdout,
    /^ {2}2 {2}\S+ {2}transient {2}MILLRACE_TRANSIENT {2}the shop is closed, password=\[redacted\]$/m,
  )
  assert.equal((await run('dlq', 'show', 'orders')).code, 0)
  assert.equal((await run('dlq', 'show', 'orders', 'nope')).code, 1)

  assert.equal(
    (await run('dlq', 'redrive', 'orders', '--all', '--dry-run')).stdout,
    '5 would be moved\n',
  )
  const one = await run('dlq', 'redrive', 'orders', ids[0] ?? '', 'nope', '--json')
  assert.deepEqual(
    [one.code, JSON.parse(one.stdout)],
    [1, { matched: 1, moved: 1, notFound: ['nope'] }],
  )
  assert.match(one.stderr, /not among the dead letters: nope/)
  assert.equal(
    (await run('dlq', 'redrive', 'orders', '--class', 'permanent', '--reason', 'fixed')).stdout,
    'moved 1 of 1\n',
  )
  assert.equal(
    (await run('dlq', 'discard', 'orders', ids[2] ?? '', '--reason', 'test order')).stdout,
    'discarded 1 of 1\n',
  )
  assert.equal(
    (await run('dlq', 'redrive', 'orders', '--all', '--rate', '100')).stdout,
    'moved 2 of 2\n',
  )
  const after = await run('dlq', 'ls', 'orders')
  assert.deepEqual([after.code, after.stdout], [0, ''])
  const { depth, dead } = JSON.parse((await run('stats', 'orders', '--json')).stdout) as Record<
    string,
    unknown
  >
  assert.deepEqual([depth, dead], [4, 0])

  await checkAudit(t, made, ids[2] ?? '')
})

test('dlq redrive that is stopped says what is left, and has failed', async (t) => {
  const before = (['SIGINT', 'SIGTERM'] as const).map((signal) => process.listenerCount(signal))
  const made = await shop(t)
  await bury(made, ['p1', 'p2', 'p3'])
  const text = await made.runStopped('dlq', 'redrive', 'orders', '--all')
  assert.deepEqual(text, {
    code: 1,
    stdout: 'moved 0 of 3\n',
    stderr: 'millrace: stopped; run it again for the other 3\n',
  })
  assert.equal((await made.run('dlq', 'redrive', 'orders', '--all')).code, 0)
  const after = (['SIGINT', 'SIGTERM'] as const).map((signal) => process.listenerCount(signal))
  assert.deepEqual(after, before, 'nobody listens to signals any more')
})

/** Four were redriven, this one was discarded. */
async function checkAudit(t: TestContext, { run }: Project, discarded: string): Promise<void> {
  const audit = JSON.parse((await run('dlq', 'audit', 'orders', '--json')).stdout) as {
    act: string
    messageId: string
    actor: string
    reason: string
  }[]
  assert.equal(audit.length, 5)
  const entry = audit.find(({ act }) => act === 'discard')
  assert.deepEqual(
    [entry?.messageId, entry?.actor, entry?.reason],
    [discarded, 'cli:ada', 'test order'],
  )
  const listed = await run('dlq', 'audit', 'orders', '--limit', '3')
  assert.match(listed.stdout, /^AT +ACT +ID +ACTOR +REASON\n/)
  assert.match(listed.stdout, new RegExp(`^\\S+ +discard +${discarded} +cli:ada +test order$`, 'm'))
  assert.equal(listed.stdout.trim().split('\n').length, 4)
  const none = await (await shop(t)).run('dlq', 'audit', 'orders')
  assert.deepEqual([none.code, none.stdout], [0, ''])
  assert.match(none.stderr, /^nothing was redriven or discarded/)
}

test('stats shows all queues as a table', async (t) => {
  const { run } = await shop(t)
  const [head, row] = (await run('stats')).stdout.split('\n')
  assert.equal(head, 'QUEUE   DEPTH  IN FLIGHT  SCHEDULED  DEAD  AGE   PAUSED  CAPACITY  OWNER')
  assert.equal(row, 'orders      0          0          0     0  0 ms  no        100000  team-shop')
})

test('doctor says what the backend does by itself, and that nothing is wrong', async (t) => {
  const { run } = await shop(t)
  const { code, stdout } = await run('doctor')
  assert.equal(code, 0)
  assert.match(stdout, /^backend: sqlite\na confirmed message survives .*\n\nNEED +FROM +HOW\n/)
  assert.match(stdout, /^delays +backend +up to \d+ days$/m)
  assert.match(stdout, /^nothing is wrong$/m)
  assert.doesNotMatch(stdout, /unbounded/)
  const { abilities, unbounded, health } = JSON.parse((await run('doctor', '--json')).stdout)
  assert.deepEqual([unbounded, health.ok], [[], true])
  assert.deepEqual(
    abilities.map(({ need }: { need: string }) => need),
    ['delays', 'attempts', 'deadLetters', 'keys', 'pauses', 'crashes', 'priorities'],
  )
})

test('doctor notes that an inbox in another file than the queues has no outbox, and that is no failure', async (t) => {
  const { folder, write, run } = await project(t)
  const inbox = `inbox: sqliteInbox({ file: ${JSON.stringify(join(folder, 'shop.db'))} }),`
  const config = ordersConfig(folder).replace('queues: [orders]', `${inbox} queues: [orders]`)
  await write('millrace.config.ts', `import { sqliteInbox } from 'millrace/inbox'\n${config}`)
  assert.equal((await run('migrate')).code, 0)
  const { code, stdout } = await run('doctor')
  assert.equal(code, 0)
  const sentence =
    /^note: the database of inbox sqlite is not that of transport sqlite: .* give createMillrace outbox: sqliteOutbox\(…\)/m
  assert.match(stdout, sentence)
  assert.match(stdout, /^nothing is wrong$/m)
  const { notes } = JSON.parse((await run('doctor', '--json')).stdout)
  assert.match(`note: ${notes}`, sentence)
})

test('doctor and stats name each queue that is unbounded, and that is no failure', async (t) => {
  const { folder, write, run } = await project(t)
  const more = ['imports', 'exports'].map(
    (name) =>
      `defineQueue({ name: '${name}', owner: 'team-shop', payload: z.null(), capacity: 'unbounded' })`,
  )
  const config = ordersConfig(folder).replace('queues: [orders]', `queues: [orders, ${more}]`)
  await write('millrace.config.ts', config)
  assert.equal((await run('migrate')).code, 0)
  const { code, stdout } = await run('doctor')
  assert.equal(code, 0)
  assert.deepEqual(
    stdout.split('\n').filter((line) => line.startsWith('note: ')),
    ['imports', 'exports'].map(
      (name) =>
        `note: queue "${name}" is unbounded (capacity: 'unbounded'): it grows until the backend is full`,
    ),
  )
  assert.match(stdout, /^nothing is wrong$/m)
  const { unbounded, health } = JSON.parse((await run('doctor', '--json')).stdout)
  assert.deepEqual([unbounded, health.ok], [['imports', 'exports'], true])
  const [head = '', ...rows] = (await run('stats')).stdout.trimEnd().split('\n')
  const place = head.split(/ {2,}/).indexOf('CAPACITY')
  assert.deepEqual(
    rows.map((row) => row.split(/ {2,}/)).map((cells) => [cells[0], cells[place]]),
    [
      ['orders', '100000'],
      ['imports', 'unbounded'],
      ['exports', 'unbounded'],
    ],
  )
  const [, imports] = JSON.parse((await run('stats', '--json')).stdout)
  assert.deepEqual([imports.queue, imports.capacity], ['imports', 'unbounded'])
})

test('doctor names the claim check, and ends with 1 when its store fails', async (t) => {
  const made = await project(t)
  const doctor = async (more: string) => {
    const folder = JSON.stringify(join(made.folder, 'blobs'))
    const config = ordersConfig(made.folder)
      .replace(
        'queues:',
        `claimCheck: { blobs: { ...fileBlobs({ folder: ${folder} }), ${more} } }, queues:`,
      )
      .replace('import { sqlite }', "import { fileBlobs } from 'millrace/blobs'\nimport { sqlite }")
    await made.write(`millrace.config${more.length}.ts`, config)
    const chosen = ['--config', `millrace.config${more.length}.ts`]
    await made.run('migrate', ...chosen)
    return made.run('doctor', ...chosen)
  }
  const sound = await doctor('')
  assert.equal(sound.code, 0, sound.stderr)
  assert.match(
    sound.stdout,
    /^claim check: payloads above 65536 bytes, up to 67108864, lie in files in .*blobs$/m,
  )
  assert.match(sound.stdout, /^they are kept for 30 days after their message became ready$/m)
  const away = await doctor("list: () => Promise.reject(new Error('gone fishing'))")
  assert.equal(away.code, 1)
  assert.match(away.stdout, /^wrong: the blob store files in .*blobs fails \(gone fishing\)$/m)
})

test('dlq show: a body that is no text is there byte by byte, as base64 beside what can be read of it', async (t) => {
  const made = await shop(t)
  const { folder, run } = made
  const body = Buffer.from([0x7b, 0xff, 0xfe, 0x00])
  const codec = { contentType: 'application/octet-stream', encode: () => body, decode: () => null }
  const spoiled = defineQueue({ name: 'orders', owner: 'team-shop', payload: z.null(), codec })
  const dead = Promise.withResolvers<void>()
  const transport = sqlite({ file: join(folder, 'orders.db') })
  const quiet = { debug() {}, info() {}, warn() {}, error() {} }
  const sender = await createMillrace({ transport, queues: [spoiled], logger: quiet })
  await sender.send(spoiled, null)
  await sender.close()
  const app = await createMillrace({
    ...{ transport, queues: [orders], logger: quiet },
    onDeadLetter: () => dead.resolve(),
  })
  app.work(orders, () => undefined)
  await app.start()
  await dead.promise
  await app.close()
  const shown = JSON.parse((await run('dlq', 'show', 'orders', '--json')).stdout) as {
    readonly payload: string
    readonly bodyBase64: string
  }
  assert.deepEqual(Buffer.from(shown.bodyBase64, 'base64'), body)
  assert.equal(shown.payload, '{\ufffd\ufffd\0')
  assert.match((await run('dlq', 'show', 'orders')).stdout, /^base64 +e\/\/\+AA==$/m)
  await bury(made, ['p'])
  assert.doesNotMatch((await run('dlq', 'show', 'orders', '--json')).stdout, /bodyBase64/)
})

test('the audit names the user of the system where the environment names none', () => {
  const { username } = userInfo()
  assert.equal(actorOf({ env: { USER: 'ada', LOGNAME: 'bob' } }), 'cli:ada')
  assert.equal(actorOf({ env: { USER: '', LOGNAME: 'bob' } }), 'cli:bob')
  assert.equal(actorOf({ env: {} }), `cli:${username}`)
})

test('what is stuck in an outbox is listed, tried again and thrown away from the command line', async (t) => {
  const made = await project(t)
  const config = ordersConfig(made.folder)
    .replace(
      'import { sqlite }',
      "import { sqliteOutbox } from 'millrace/outbox'\nimport { sqlite }",
    )
    .replace(
      'queues:',
      `outbox: sqliteOutbox({ file: ${JSON.stringify(join(made.folder, 'shop.db'))} }), queues:`,
    )
  await made.write('millrace.config.ts', config)
  assert.equal((await made.run('migrate')).code, 0)
  const db = new DatabaseSync(join(made.folder, 'shop.db'))
  const row =
    db.prepare(`INSERT INTO millrace_outbox (id, aggregatetype, aggregateid, type, created_at, next_try_at,
    tries, ordering_key, priority, headers, payload, last_error)
    VALUES (?, 'orders', 'k', 'message', 0, 0, ?, 'k', 0, '{}', x'31', 'conflict: message zero has its key')`)
  row.run('one', 3)
  row.run('two', 0)
  const listed = await made.run('outbox', 'ls', 'orders')
  assert.match(
    listed.stdout,
    /^ID +KEY +TRIES +ADDED AT +NEXT TRY AT +LAST ERROR\none +k +3 +1970\S+ +1970\S+ +conflict: message zero has its key\n$/,
  )
  assert.deepEqual(await made.run('outbox', 'retry', 'orders', 'one', 'two'), {
    code: 1,
    stdout: 'due now: 1 of 2\n',
    stderr: 'millrace: not stuck in the outbox: two\n',
  })
  row.run('three', 1)
  const pageAfter = async (...cursor: readonly string[]) =>
    JSON.parse(
      (await made.run('outbox', 'ls', 'orders', '--json', '--limit', '1', ...cursor)).stdout,
    )
  const first = await pageAfter()
  const last = await pageAfter('--cursor', first.cursor)
  const idsOf = ({ items }: { items: { messageId: string }[] }) =>
    items.map(({ messageId }) => messageId)
  assert.deepEqual([idsOf(first), idsOf(last), last.cursor], [['one'], ['three'], null])
  db.exec("DELETE FROM millrace_outbox WHERE id = 'three'")
  assert.equal((await made.run('outbox', 'discard', 'orders', 'one')).code, 2)
  const gone = await made.run('outbox', 'discard', 'orders', 'one', '--reason', 'by hand')
  assert.deepEqual([gone.code, gone.stdout], [0, 'discarded 1 of 1\n'])
  const audit = await made.run('outbox', 'audit', 'orders')
  assert.match(audit.stdout, /discard +one +cli:ada +by hand/)
  const page = JSON.parse((await made.run('outbox', 'ls', 'orders', '--json')).stdout)
  assert.deepEqual(page, { items: [], cursor: null })
  db.close()
  const without = await (await shop(t)).run('outbox', 'ls', 'orders')
  assert.deepEqual(
    [without.code > 0, /this app has none; give createMillrace/.test(without.stderr)],
    [true, true],
  )
})
