import assert from 'node:assert/strict'
import { rm } from 'node:fs/promises'
import { test } from 'node:test'
import { commands } from '../../src/cli/commands/index.ts'
import { formatDuration, parseDuration } from '../../src/cli/duration.ts'
import { oneLine, table, terminalJson } from '../../src/cli/terminal-text.ts'
import { project } from './cli-project.ts'

test('durations have a unit, or are refused', () => {
  const given = ['500ms', '5s', '2m', '1h', '1d', '1.5s', '0s']
  assert.deepEqual(
    given.map((text) => parseDuration('--delay', text)),
    [500, 5_000, 120_000, 3_600_000, 86_400_000, 1_500, 0],
  )
  for (const text of ['5', '', '-5s', '5 s', '5w', 's', '1e3s', '1.2345s']) {
    assert.throws(() => parseDuration('--delay', text), /expected a duration such as 500ms/)
  }
  assert.deepEqual([0, 350, 2_000, 64_000, 3_600_000, 90_061_000].map(formatDuration), [
    '0 ms',
    '350 ms',
    '2 s',
    '1 m 4 s',
    '1 h',
    '1 d 1 h',
  ])
})

test('what others wrote cannot steer the terminal', () => {
  const hostile = 'a\u001b[2Jb\u009b31mc\nd'
  assert.equal(oneLine(hostile), 'a\u241b[2Jb\ufffd31mc d')
  assert.equal(terminalJson({ hostile }), '{"hostile":"a\\u001b[2Jb\\u009b31mc\\nd"}')
  assert.deepEqual(JSON.parse(terminalJson({ hostile })), { hostile })
  assert.equal(terminalJson({ a: undefined, b: 1n }), '{"a":null,"b":"1"}')
  assert.deepEqual(
    table(
      ['NAME', 'N'],
      [
        ['a', '10'],
        ['bcdef', '5'],
      ],
    ),
    ['NAME    N', 'a      10', 'bcdef   5'],
  )
})

test('without a command: the overview, as wrong use', async (t) => {
  const { run } = await project(t)
  const bare = await run()
  assert.equal(bare.code, 2)
  assert.match(bare.stderr, /dlq redrive <queue>/)
  const asked = await run('help')
  assert.equal(asked.code, 0)
  for (const { name } of commands) assert.ok(asked.stdout.includes(`  ${name}`), name)
  for (const asked of ['--version', '-v']) {
    assert.match((await run(asked)).stdout, /^\d+\.\d+\.\d+\n$/)
  }
})

test('every command explains itself, in both ways, and as JSON', async (t) => {
  const { run } = await project(t)
  for (const { name, options } of commands) {
    const words = name.split(' ')
    const helped = await run('help', ...words)
    assert.deepEqual(await run(...words, '--help'), helped, name)
    assert.equal(helped.code, 0)
    for (const option of Object.keys(options))
      assert.ok(helped.stdout.includes(`--${option}`), `${name} --${option}`)
    const json: unknown = JSON.parse((await run('help', ...words, '--json')).stdout)
    assert.equal((json as { name: string }).name, name)
  }
})

test('a slip of the finger is answered by the nearest word, on one line, with exit code 2', async (t) => {
  const { run } = await project(t)
  const slips = [
    [['stat'], /did you mean "stats"\?/],
    [['sned', 'orders', '{}'], /did you mean "send"\?/],
    [['dlq'], /dlq needs one of ls, show, redrive, discard, audit/],
    [['dlq', 'redirve', 'orders'], /did you mean "dlq redrive"\?/],
    [['frobnicate'], /no command "frobnicate"; see millrace help/],
    [['send', 'orders', '{}', '--dely', '5s'], /no option --dely; did you mean --delay\?/],
    [['send', 'orders', '{}', '--delay'], /--delay needs a value: --delay <duration>/],
    [['send', 'orders', '{}', '--key', '--priority', '3'], /--key needs a value/],
    [['send', 'orders', '{}', '--key', 'a', '--key', 'b'], /--key was given twice/],
    [
      ['send', 'orders', '{}', '--priority', '10'],
      /--priority: expected a whole number from 0 to 9, got "10"/,
    ],
    [['send', 'orders', '{}', '--delay', '5'], /--delay: expected a duration/],
    [['send', 'orders'], /send needs a payload/],
    [['send'], /^millrace: <queue> is missing; usage: millrace send <queue>/],
    [['message', 'orders'], /^millrace: <id> is missing; usage: millrace message <queue> <id>/],
    [['dlq', 'discard', 'q', '--reason', 'x'], /^millrace: <id> is missing;/],
    [
      ['keys', 'show', 'orders'],
      /^millrace: <key> is missing; usage: millrace keys show <queue> <key>/,
    ],
    [['keys', 'show', 'orders', 'a', 'b'], /"b" is too much/],
    [['dlq', 'redrive', '--all'], /^millrace: <queue> is missing;/],
    [['stats', 'a', 'b'], /"b" is too much; usage: millrace stats \[queue\]/],
    [['stats', '--json=yes'], /--json takes no value/],
    [['dlq', 'ls', 'orders', '--class', 'transent'], /did you mean transient\?/],
    [['dlq', 'ls', 'orders', '--limit', '501'], /--limit: expected a whole number from 1 to 500/],
    [['dlq', 'ls', 'orders', '--limit', '1e2'], /--limit: expected a whole number .* got "1e2"/],
    [['dlq', 'redrive', 'orders'], /needs ids, --all or --class/],
    [['dlq', 'redrive', 'orders', 'id', '--all'], /not ids and one of the others/],
    [['dlq', 'redrive', 'orders', '--all', '--rate', '0'], /--rate: expected a number above 0/],
    [['dlq', 'discard', 'orders', 'id'], /needs --reason/],
    [['dlq', 'discard', 'orders', 'id', '--reason', ' '], /needs --reason/],
    [['send', 'orders', '{}', '--key', '--priority', '3'], /--key needs a value/],
    [['migrate', '--check', '--print-sql'], /not both/],
    [['--frob', 'stats'], /no option --frob/],
  ] as const
  for (const [args, expected] of slips) {
    const { code, stdout, stderr } = await run(...args)
    assert.match(stderr, expected)
    assert.equal(code, 2, args.join(' '))
    assert.equal(stdout, '')
    assert.match(stderr, /^millrace: [^\n]+\n$/, args.join(' '))
  }
})

test('init in a folder that cannot be written is one line of what is wrong, not an unexpected failure', async (t) => {
  const { run, folder } = await project(t)
  await rm(folder, { recursive: true })
  const { code, stderr } = await run('init')
  assert.equal(code, 1)
  assert.match(
    stderr,
    /^millrace: greetings\.ts cannot be written: ENOENT[^\n]* \[MILLRACE_DENIED\]\n$/,
  )
})

test('with --json a failure is JSON too', async (t) => {
  const { run } = await project(t)
  const { code, stderr } = await run('stats', '--json')
  assert.equal(code, 2)
  const { error } = JSON.parse(stderr) as { error: { code: string; exitCode: number } }
  assert.deepEqual([error.code, error.exitCode], ['MILLRACE_CONFIG', 2])
})
