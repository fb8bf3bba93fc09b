import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ordersConfig, project } from './cli-project.ts'

test('explain-error takes statuses, codes, names, JSON and text', async (t) => {
  const { run, runWithInput, write } = await project(t)
  await write('error.json', '{"status":429,"headers":{"Retry-After":"7"}}')
  const asked = [
    [['503'], 'transient HTTP_503'],
    [['503', '--header', 'Retry-After: 5'], 'throttled HTTP_503'],
    [['HTTP_410'], 'permanent HTTP_410'],
    [['302'], 'permanent HTTP_302'],
    [['599'], 'transient HTTP_599'],
    [['ECONNRESET'], 'transient ECONNRESET'],
    [['EPIPE'], 'transient EPIPE'],
    [['40P01'], 'transient 40P01'],
    [['XX000'], 'transient XX000'],
    [['42P01'], 'permanent 42P01'],
    [['unavailable'], 'transient GRPC_UNAVAILABLE'],
    [['GRPC_3'], 'permanent GRPC_INVALID_ARGUMENT'],
    [['ThrottlingException'], 'throttled ThrottlingException'],
    [['SQLITE_BUSY'], 'transient SQLITE_BUSY'],
    [['MILLRACE_QUEUE_FULL'], 'throttled MILLRACE_QUEUE_FULL'],
    [['SyntaxError'], 'permanent SyntaxError'],
    [['{"code":"ECONNREFUSED"}'], 'transient ECONNREFUSED'],
    [['{"status":503}', '--header', 'Retry-After: 5'], 'throttled HTTP_503'],
    [['--file', 'error.json'], 'throttled HTTP_429'],
    [['Error: connect ECONNREFUSED 127.0.0.1:5432'], 'transient ECONNREFUSED'],
    [['TypeError: fetch failed'], 'transient FETCH_FAILED'],
    [['it just did not work'], 'transient Error'],
  ] as const
  for (const [args, expected] of asked) {
    const { code, stdout, stderr } = await run('explain-error', ...args, '--json')
    assert.deepEqual([code, stderr], [0, ''], args.join(' '))
    const found = JSON.parse(stdout) as { errorClass: string; code: string }
    assert.equal(`${found.errorClass} ${found.code}`, expected, args.join(' '))
  }
  assert.match((await runWithInput('ETIMEDOUT', 'explain-error', '-')).stdout, /^code +ETIMEDOUT$/m)
})

/** The rules of a queue's own, which come first. */
const OUR_RULES = `
function ourRules(error: unknown): { errorClass: 'permanent' } | undefined {
  return Number(Reflect.get(Object(error), 'status')) === 503 ? { errorClass: 'permanent' } : undefined
}
`

test('explain-error says what would happen next, by the functions that a worker uses', async (t) => {
  const { run, write, folder } = await project(t)
  const transient = await run('explain-error', 'ECONNRESET')
  assert.match(transient.stdout, /^after attempt 1: waits up to 1 s$/m)
  assert.match(transient.stdout, /^after attempt 7: waits up to 1 m 4 s$/m)
  assert.match(transient.stdout, /^after attempt 8: to the dead letters\n$/m)
  const throttled = await run('explain-error', '429', '--header', 'Retry-After: 5')
  assert.match(throttled.stdout, /^each time: waits 5 s to 5\.5 s, no attempt is spent/m)
  assert.match(
    (await run('explain-error', '404')).stdout,
    /^after attempt 1: to the dead letters$/m,
  )
  assert.match(
    (await run('explain-error', '{"code":"MILLRACE_TRANSIENT","delayMs":2500}')).stdout,
    /^after attempt 1: waits 2\.5 s$/m,
  )
  await write('millrace.config.ts', ordersConfig(folder))
  const byQueue = await run('explain-error', '500', '--queue', 'orders')
  assert.match(byQueue.stdout, /queue "orders": attempts 2, base 1 ms, at most 1 ms/)
  assert.match(byQueue.stdout, /^after attempt 2: to the dead letters$/m)
  const patient = ordersConfig(folder)
    .replace('attempts: 2', 'attempts: 25')
    .replace("owner: 'team-shop',", "owner: 'team-shop', classify: ourRules,")
  await write('patient.config.ts', `${patient}${OUR_RULES}`)
  const ours = await run(
    'explain-error',
    '500',
    '--queue',
    'orders',
    '--config',
    'patient.config.ts',
  )
  assert.match(ours.stdout, /^class +transient$/m)
  assert.match(ours.stdout, /\nafter attempt 20: [^\n]+\n… and so on, dead after attempt 25\n$/)
  const known = await run(
    'explain-error',
    '503',
    '--queue',
    'orders',
    '--config',
    'patient.config.ts',
  )
  assert.match(known.stdout, /^after attempt 1: to the dead letters$/m)
})

test('explain-error says that no rule knows a code, with the nearest one, and still decides', async (t) => {
  const { run } = await project(t)
  const asked = [
    ['foo', 'an unknown code'],
    ['MILLRACE_NOPE', 'an unknown code'],
    ['MILLRACE_QUEUE_FUL', 'an unknown code, did you mean MILLRACE_QUEUE_FULL?'],
    ['ECONRESET', 'an unknown code, did you mean ECONNRESET?'],
    ['ThrottlingExeption', 'an unknown code, did you mean ThrottlingException?'],
    ['99999', 'an unknown SQLSTATE'],
    ['ECONNRESET', 'an error code or name'],
  ] as const
  for (const [code, expected] of asked) {
    const { stdout } = await run('explain-error', code)
    assert.equal(/^read as +(.*)$/m.exec(stdout)?.[1], expected)
    assert.match(stdout, /^class +transient$/m)
  }
})

test('explain-error without an error prints the table; what cannot be is wrong use', async (t) => {
  const { run } = await project(t)
  assert.match((await run('explain-error')).stdout, /^HTTP +throttled +.*503 with Retry-After$/m)
  assert.ok(Array.isArray(JSON.parse((await run('explain-error', '--json')).stdout)))
  const wrong = [
    [['200'], /status 200 is no failure/],
    [['600'], /600 is no HTTP status/],
    [['{"status":'], /begins like JSON and is none/],
    [['--file', 'nowhere'], /--file nowhere cannot be read/],
    [['503', '--header', 'Retry-After'], /--header: expected 'Name: value'/],
    [['503', '--file', 'x'], /not both/],
  ] as const
  for (const [args, expected] of wrong) {
    const { code, stderr } = await run('explain-error', ...args)
    assert.equal(code, 2)
    assert.match(stderr, expected)
  }
})
