import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { test } from 'node:test'
import { commands } from '../../src/cli/commands/index.ts'
import { ordersConfig, project } from './cli-project.ts'

test('a config file that cannot be used is explained on one line, with exit code 2', async (t) => {
  const { run, write } = await project(t)
  const memory = "import { memory } from 'millrace/memory'\n"
  const files = [
    [
      'nodefault.ts',
      'export const config = {}',
      /nodefault\.ts has no default export; write `export default defineConfig/,
    ],
    [
      'string.ts',
      'export default "hello"',
      /string\.ts: its default export is not what defineConfig takes: expected an object/,
    ],
    [
      'empty.ts',
      'export default {}',
      /transport: expected what sqlite.*queues: expected a list of what defineQueue gives/,
    ],
    [
      'worker.ts',
      `${memory}export default { transport: memory(), queues: [{ name: 'a', schema: {} }], workers: [() => 1] }`,
      /workers\[0\]: expected \{ queue, handler \} \(defineWorker\), got a function/,
    ],
    [
      'syntax.ts',
      'export default {\n  queues: [}\n',
      /syntax\.ts has a syntax error \(syntax\.ts:2\)/,
    ],
    [
      'syntax.mjs',
      'export default {\n  queues: [}\n',
      /syntax\.mjs has a syntax error: .*`node --check syntax\.mjs` shows where/,
    ],
    [
      'enum.ts',
      'enum A { B }\nexport default A',
      /enum\.ts has a syntax error \(enum\.ts:1\): .*enum/,
    ],
    [
      'missing.ts',
      "import 'left-pad'\nexport default {}",
      /missing\.ts imports "left-pad", which is not there/,
    ],
    [
      'relative.ts',
      "import './queues.ts'\nexport default {}",
      /relative\.ts imports "queues\.ts", which is not there/,
    ],
    [
      'throws.ts',
      "throw new Error('no url in postgres://ada:hunter2@db/x')",
      /throws\.ts failed when it was loaded: no url in postgres:\/\/\[redacted\]@db/,
    ],
    [
      'queue.ts',
      "import { defineQueue } from 'millrace'\ndefineQueue({ name: '', owner: 'me', payload: undefined as never })",
      /queue\.ts failed when it was loaded: queue "": name: expected/,
    ],
  ] as const
  for (const [name, text, expected] of files) {
    await write(name, text)
    const { code, stdout, stderr } = await run('stats', '--config', name)
    assert.match(stderr, expected)
    assert.match(stderr, /^millrace: [^\n]+\n$/, name)
    assert.deepEqual([code, stdout], [2, ''], name)
  }
  assert.match(
    (await run('stats', '--config', 'nowhere.ts')).stderr,
    /config file nowhere\.ts does not exist/,
  )
  assert.match((await run('stats')).stderr, /no millrace\.config\.ts .* run `millrace init`/)
})

test('every wrong option of a config file is named at once, before anything is opened', async (t) => {
  const { run, write, folder } = await project(t)
  const text = ordersConfig(folder).replace(
    /workers: .*/,
    `worker: [],
  workers: [
    { queue: orders, handler: () => 1, concurency: 5 },
    { queue: orders, handler: () => 1, concurrency: 0 },
    { queue: { ...orders, name: 'bills' }, handler: () => 1 },
    5,
  ],
  intake: { prt: 5, token: ['t'], host: '0.0.0.0' },`,
  )
  await write('millrace.config.ts', text)
  for (const command of ['start', 'stats']) {
    const { code, stdout, stderr } = await run(command)
    assert.deepEqual([code, stdout], [2, ''])
    for (const expected of [
      'unknown option "worker", did you mean "workers"?',
      'unknown option "workers[0].concurency", did you mean "workers[0].concurrency"?',
      'workers[1].concurrency: expected an integer from 1 to 10000, got 0',
      'workers[1]: queue "orders" has a worker already',
      'workers[2]: queue "bills" is not among queues',
      'workers[3]: expected { queue, handler } (defineWorker), got 5',
      'intake: unknown option "prt", did you mean "port"?',
      'intake: unknown option "token", did you mean "tokens"?',
      'intake: host: "0.0.0.0" can be reached from other machines; add the option tokens',
      '[MILLRACE_INVALID_OPTIONS]',
    ]) {
      assert.ok(stderr.includes(expected), `${expected} in ${stderr}`)
    }
  }
  assert.ok(!existsSync(`${folder}/orders.db`))
})

for (const [type, text] of [
  ['no package.json', undefined],
  ['no type', '{}'],
  ['commonjs', '{ "type": "commonjs" }'],
  ['module', '{ "type": "module" }'],
] as const) {
  test(`a TypeScript config and what it imports run without a build, package.json: ${type}`, async (t) => {
    const { run, write, folder } = await project(t)
    if (text !== undefined) await write('package.json', text)
    await write('base.ts', ordersConfig(folder))
    await write(
      'millrace.config.ts',
      "import base from './base.ts'\nconst config: object = base\nexport default config\n",
    )
    assert.equal((await run('migrate')).code, 0)
    const { code, stdout, stderr } = await run('stats', 'orders', '--json')
    assert.deepEqual([code, stderr], [0, ''])
    assert.equal((JSON.parse(stdout) as { owner: string }).owner, 'team-shop')
  })
}

test('a config in JavaScript is found too, and one in another folder by --config, before or after the command', async (t) => {
  const { run, write, folder } = await project(t)
  const text = ordersConfig(folder).replace(': Record<string, unknown>', '')
  await write('millrace.config.mjs', text)
  assert.equal((await run('migrate')).code, 0)
  await write('other.mjs', text.replaceAll("'orders'", "'bills'"))
  assert.equal((await run('stats', 'bills', '--config', 'other.mjs')).code, 0)
  assert.equal((await run('--config', 'other.mjs', 'stats', 'bills')).code, 0)
  const { code, stderr } = await run('stats', 'order')
  assert.equal(code, 2)
  assert.equal(
    stderr,
    'millrace: millrace.config.mjs has no queue "order"; did you mean "orders"?\n',
  )
})

test('only send, start and migrate bring a schema; the others say what is missing', async (t) => {
  const { run, write, folder } = await project(t)
  await write('millrace.config.ts', ordersConfig(folder))
  const { code, stderr } = await run('stats')
  assert.equal(code, 1)
  assert.match(
    stderr,
    /^millrace: sqlite: file "[^"]+" does not exist.*\[MILLRACE_SCHEMA_OUTDATED\]\n$/,
  )
  const check = await run('migrate', '--check', '--json')
  assert.equal(check.code, 1)
  assert.equal((JSON.parse(check.stdout) as { upToDate: boolean }).upToDate, false)
  // Where the config wants it so send is none of them, and migrate is all the same.
  const checking = ordersConfig(folder).replace('queues:', "migrate: 'check', queues:")
  await write('checking.config.ts', checking)
  const sent = await run('send', 'orders', '{"orderId":"a"}', '--config', 'checking.config.ts')
  assert.deepEqual([sent.code, existsSync(`${folder}/orders.db`)], [1, false])
  assert.match(sent.stderr, /\[MILLRACE_SCHEMA_OUTDATED\]\n$/)
  assert.equal((await run('migrate', '--config', 'checking.config.ts')).code, 0)
  assert.deepEqual(await run('migrate', '--check'), {
    code: 0,
    stdout: 'the schema is up to date\n',
    stderr: '',
  })
})

test('migrate --check of what cannot be asked says why, and not that the schema is outdated', async (t) => {
  const { run, write, folder } = await project(t)
  await write('millrace.config.ts', ordersConfig(folder))
  await write('orders.db', 'this is no database, whatever its name says; '.repeat(100))
  const { code, stdout, stderr } = await run('migrate', '--check')
  assert.deepEqual([code, stdout], [2, ''])
  assert.match(stderr, /^millrace: [^\n]*is not a SQLite database[^\n]*\n$/)
})

test('no command that looks, or acts on what is there, makes a database', async (t) => {
  const ids = ['orders', 'some-id']
  const operands: Readonly<Record<string, readonly string[]>> = {
    breaker: ['open', 'orders', 'shop'],
    cancel: ids,
    'dlq audit': ['orders'],
    'dlq discard': [...ids, '--reason', 'test order'],
    'dlq ls': ['orders'],
    'dlq redrive': ['orders', '--all'],
    'dlq show': ids,
    'keys ls': ['orders'],
    'keys resume': ids,
    'keys show': ids,
    'keys skip': [...ids, '--reason', 'test order'],
    message: ids,
    'outbox audit': ['orders'],
    'outbox discard': [...ids, '--reason', 'test order'],
    'outbox ls': ['orders'],
    'outbox retry': ids,
    pause: ['orders'],
    purge: ['orders', '--yes'],
    resume: ['orders'],
  }
  // They make one, need none, or have a test of their own.
  const others = ['explain-error', 'init', 'migrate', 'send', 'start']
  const { run, write, folder } = await project(t)
  await write('millrace.config.ts', ordersConfig(folder))
  for (const { name } of commands.filter((command) => !others.includes(command.name))) {
    const { code, stderr } = await run(...name.split(' '), ...(operands[name] ?? []))
    assert.equal(code, 1, `${name}: ${stderr}`)
    assert.match(stderr, /does not exist.*\[MILLRACE_SCHEMA_OUTDATED\]\n$/, name)
    assert.equal(existsSync(`${folder}/orders.db`), false, name)
  }
})

test('the printed SQL, applied by hand, is the schema', async (t) => {
  const { run, write, folder } = await project(t)
  await write('millrace.config.ts', ordersConfig(folder))
  const { code, stdout } = await run('migrate', '--print-sql')
  assert.equal(code, 0)
  const { DatabaseSync } = process.getBuiltinModule('node:sqlite')
  const db = new DatabaseSync(`${folder}/orders.db`)
  db.exec(stdout)
  db.close()
  assert.equal((await run('migrate', '--check')).code, 0)
  assert.equal((await run('send', 'orders', '{"orderId":"a"}')).code, 0)
})

test('the memory transport is remarked on, because commands cannot see another process', async (t) => {
  const { run, write, folder } = await project(t)
  const text = ordersConfig(folder)
    .replace("import { sqlite } from 'millrace/sqlite'", "import { memory } from 'millrace/memory'")
    .replace(/sqlite\(.*\)/, 'memory()')
  await write('millrace.config.ts', text)
  const { code, stderr } = await run('stats')
  assert.equal(code, 0)
  assert.match(stderr, /memory transport, which lives in one process/)
  assert.match((await run('migrate', '--print-sql')).stderr, /has no SQL schema/)
})

for (const [what, url, expected, exitCode] of [
  ['port', 'postgres://ada:hunter2@127.0.0.1:1/shop', /ECONNREFUSED.*MILLRACE_UNAVAILABLE/, 1],
  [
    'host',
    'postgres://ada:hunter2@nowhere.invalid/shop',
    /(?:ENOTFOUND|EAI_AGAIN).*UNAVAILABLE/,
    1,
  ],
  ['address', 'postgres://ada:hunter2#x@127.0.0.1/shop', /url cannot be read.*MILLRACE_CONFIG/, 2],
  ['variable', undefined, /url: undefined; is the environment variable set\?.*MILLRACE_CONFIG/, 2],
] as const) {
  test(`a wrong ${what} of the database is one line of advice`, async (t) => {
    const { run, write, folder } = await project(t)
    const text = ordersConfig(folder)
      .replace("{ sqlite } from 'millrace/sqlite'", "{ postgres } from 'millrace/postgres'")
      .replace(/sqlite\(.*\)/, `postgres({ url: ${JSON.stringify(url)} as string })`)
    await write('millrace.config.ts', text)
    const { code, stdout, stderr } = await run('stats')
    assert.match(stderr, expected)
    assert.match(stderr, /^millrace: [^\n]+\n$/)
    assert.doesNotMatch(stderr, /hunter2|unexpected|redacted/)
    assert.deepEqual([code, stdout], [exitCode, ''])
  })
}

test('a database that is away is one line without its password, and its SQL can be printed all the same', async (t) => {
  const { run, write } = await project(t)
  await write(
    'millrace.config.ts',
    `
import { defineConfig, defineQueue } from 'millrace'
import { postgres } from 'millrace/postgres'
import { postgresInbox } from 'millrace/inbox'
import { postgresOutbox } from 'millrace/outbox'
import { z } from 'zod'

const url = 'postgres://ada:hunter2@127.0.0.1:1/shop'
export default defineConfig({
  transport: postgres({ url, schema: 'mill' }),
  queues: [defineQueue({ name: 'orders', owner: 'team-shop', payload: z.object({}) })],
  inbox: postgresInbox({ url, schema: 'mill' }),
  outbox: postgresOutbox({ url, schema: 'mill' }),
})
`,
  )
  const { code, stdout, stderr } = await run('stats')
  assert.deepEqual([code, stdout], [1, ''])
  assert.match(stderr, /^millrace: [^\n]*ECONNREFUSED[^\n]*\n$/)
  assert.doesNotMatch(stderr, /hunter2|unexpected/)
  const sql = await run('migrate', '--print-sql')
  assert.equal(sql.code, 0)
  for (const component of ['queue', 'inbox', 'outbox']) {
    assert.match(sql.stdout, new RegExp(`^-- ${component}, version 1$`, 'm'))
  }
  assert.match(sql.stdout, /CREATE SCHEMA IF NOT EXISTS "?mill"?;/)
  assert.doesNotMatch(sql.stdout, /^-- store/m)
})

test('where queues share a breaker, the printed SQL has the store that the database is for it', async (t) => {
  const { run, write, folder } = await project(t)
  const text = ordersConfig(folder).replace(
    "owner: 'team-shop',",
    "owner: 'team-shop', downstream: () => 'api',",
  )
  await write('millrace.config.ts', text)
  const { stdout } = await run('migrate', '--print-sql')
  assert.match(stdout, /^-- store, version 1$/m)
  assert.equal((await run('migrate')).code, 0)
  assert.equal((await run('migrate', '--check')).code, 0)
  assert.match((await run('doctor')).stdout, /^backend: sqlite, store: sqlite$/m)
})
