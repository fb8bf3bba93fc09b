import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { createMillrace } from 'millrace'
import { sqlite } from 'millrace/sqlite'
import { deliveries } from '../../examples/webhook-delivery/deliveries.ts'
import { sideBySide } from '../side-by-side.ts'
import { type Child, child, eventually, pastEcho, paste } from './child.ts'

const MAIN = 'examples/webhook-delivery/main.ts'

async function privateFile(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-example-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  return join(folder, 'webhooks.db')
}

async function start(t: TestContext, file: string, receiverPort = '0'): Promise<Child> {
  const ports = ['--port', '0', '--receiver-port', receiverPort]
  const app = child(t, process.execPath, [MAIN, ...ports, '--file', file])
  await app.says(/is ready: /)
  return app
}

/** The printed command below the comment that has these words, as it is. */
function printed(app: Child, words: string): string {
  const lines = app.output().split('\n')
  const at = lines.findIndex((line) => line.startsWith('#') && line.includes(words))
  const line = lines[at + 1]
  assert.ok(at >= 0 && line !== undefined, `no line below a comment with "${words}"`)
  return line
}

async function sendPrinted(t: TestContext, app: Child, words: string): Promise<string> {
  const answer = JSON.parse(await paste(t, printed(app, words))) as {
    id: string
    duplicate: boolean
  }
  assert.equal(answer.duplicate, false)
  return answer.id
}

/** Each has its own processes, file and ports, and mostly waits for them. */
const { test, run } = sideBySide('webhook-delivery')

test('the lines that it prints do what they say', async (t) => {
  const file = await privateFile(t)
  const app = await start(t, file)
  const ok = await sendPrinted(t, app, 'answers 200')
  await app.says(/POST \/ok evt-ok \{"hello":"evt-ok"\} \(time 1\) -> 200/)
  await sendPrinted(t, app, 'fails twice')
  const throttled = await sendPrinted(t, app, '429')
  const dead500 = await sendPrinted(t, app, 'always answers 500')
  const dead410 = await sendPrinted(t, app, '410')

  await app.says(/dead letter \(permanent\)/)
  await app.says(/\/flaky .*\(time 3\) -> 200/)
  await app.says(/dead letter \(transient\)/)
  await app.says(/\/429 .*\(time 2\) -> 429, Retry-After: 2[\s\S]*\/429 .*\(time 3\) -> 200/)

  const listed = await paste(t, printed(app, 'the dead letters'))
  assert.match(listed, new RegExp(`^${dead500} +\\S+ +transient +4 `, 'm'))
  assert.match(listed, new RegExp(`^${dead410} +\\S+ +permanent +1 `, 'm'))
  assert.equal(listed.trim().split('\n').length, 3, 'a head and two dead letters')
  const shown = await paste(t, printed(app, 'the newest one'))
  assert.match(shown, new RegExp(`^id +${dead500}$`, 'm'))
  assert.match(shown, /^ {2}4 {2}\S+ {2}transient {2}HTTP_500 /m)
  const own = app
    .output()
    .split('\n')
    .find((line) => line.includes('dlq show') && line.includes(dead410))
  assert.match(await paste(t, own ?? ''), /^reason +.*answered 410/m)

  await paste(t, printed(app, 'mend the receiver'))
  const redriven = app
    .output()
    .split('\n')
    .find((line) => line.includes('dlq redrive'))
  assert.equal(await paste(t, redriven ?? ''), 'moved 2 of 2\n')
  await app.says(/\/500 evt-500 .*\(time 5\) -> 200/)
  await app.says(/\/410 evt-410 .*\(time 2\) -> 200/)
  await eventually(
    () => paste(t, printed(app, 'how the queue is doing')),
    (stats) => /^webhook-deliveries +0 +0 +0 +0 /m.test(stats),
  )
  app.kill('SIGINT')
  assert.equal(await app.ended, 0)
  assert.match(app.output(), /draining[\s\S]*bye\n$/)
  assert.equal(app.output().match(/POST \/ok /g)?.length, 1, `${ok} was delivered once`)
  assert.equal(
    app.output().match(/POST \/429 /g)?.length,
    3,
    `${throttled} was delivered on the third time`,
  )
})

test('a throttled delivery spends no attempt', async (t) => {
  const file = await privateFile(t)
  const app = await start(t, file)
  const id = await sendPrinted(t, app, '429')
  await app.says(/\/429 .*\(time 1\) -> 429/)
  const looking = await createMillrace({ transport: sqlite({ file }), queues: [deliveries] })
  t.after(() => looking.close())
  const waiting = await eventually(
    () => looking.admin.messages.get(deliveries, id),
    (message) => message?.state === 'scheduled',
  )
  assert.equal(waiting?.attempt, 1)
  assert.equal(waiting?.attempts[0]?.errorClass, 'throttled')
})

test('what was running is finished at Ctrl-C', async (t) => {
  const file = await privateFile(t)
  const patient = await start(t, file)
  await sendPrinted(t, patient, 'takes 10 s')
  await patient.says(/POST \/slow/)
  patient.kill('SIGTERM')
  assert.equal(await patient.ended, 0)
  assert.doesNotMatch(patient.output(), /aborting/)
})

for (const [first, second, code] of [
  ['SIGINT', 'SIGTERM', 143],
  ['SIGTERM', 'SIGTERM', 143],
  ['SIGTERM', 'SIGINT', 130],
] as const) {
  test(`a ${second} after a ${first} does not wait: it says what is left and ends with ${code}`, async (t) => {
    const file = await privateFile(t)
    const hasty = await start(t, file)
    const id = await sendPrinted(t, hasty, 'takes 10 s')
    await hasty.says(/POST \/slow/)
    hasty.kill(first)
    await hasty.says(/draining/)
    if (second === first) await pastEcho()
    const at = Date.now()
    hasty.kill(second)
    assert.equal(await hasty.ended, code)
    assert.ok(Date.now() - at < 5_000, 'it did not wait for the slow one')
    assert.match(hasty.output(), /^aborting what still runs \(1\): [^\n]+\nbye\n$/m)
    const looking = await createMillrace({ transport: sqlite({ file }), queues: [deliveries] })
    t.after(() => looking.close())
    const back = await looking.admin.messages.get(deliveries, id)
    assert.deepEqual([back?.state, back?.attempt], ['ready', 1])
  })
}

test('killed with -9 in the middle and started again, it loses nothing', async (t) => {
  const file = await privateFile(t)
  const first = await start(t, file)
  const [, intakeUrl, receiverUrl] =
    /(http:\S+) stores in .*receiver at (http:\S+)/.exec(first.output()) ?? []
  const looking = await createMillrace({ transport: sqlite({ file }), queues: [deliveries] })
  t.after(() => looking.close())
  await looking.admin.pause(deliveries)
  const eventIds = Array.from({ length: 200 }, (_, i) => `burst-${i}`)
  for (const [i, eventId] of eventIds.entries()) {
    const response = await fetch(`${intakeUrl}/queues/${deliveries.name}/messages`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ eventId, url: `${receiverUrl}${i % 50 === 49 ? '/slow' : '/ok'}` }),
    })
    assert.equal(response.status, 202)
  }
  await looking.admin.resume(deliveries)
  await first.says(/POST \/slow/)
  first.kill('SIGKILL')
  assert.equal(await first.ended, 'SIGKILL')
  const left = await looking.admin.stats(deliveries)
  assert.ok((left.inFlight ?? 0) > 0, 'it was killed in the middle')

  const receiverPort = new URL(receiverUrl ?? '').port
  const second = await start(t, file, receiverPort)
  await eventually(
    () => looking.admin.stats(deliveries),
    ({ depth, inFlight, scheduled }) => depth === 0 && inFlight === 0 && scheduled === 0,
    120_000,
  )
  const arrived = `${first.output()}${second.output()}`
  const missing = eventIds.filter((eventId) => !arrived.includes(` ${eventId} `))
  const { dead } = await looking.admin.stats(deliveries)
  assert.deepEqual([missing, dead], [[], 0])
})

test('a taken port is one clear line', async (t) => {
  const file = await privateFile(t)
  const app = await start(t, file)
  const ports = app
    .output()
    .match(/127\.0\.0\.1:(\d+) stores[\s\S]*?receiver at http:\/\/127\.0\.0\.1:(\d+)/)
  const [, intakePort = '', receiverPort = ''] = ports ?? []
  const other = child(t, process.execPath, [
    MAIN,
    '--port',
    intakePort,
    '--receiver-port',
    '0',
    '--file',
    file,
  ])
  assert.equal(await other.ended, 1)
  assert.match(
    other.output(),
    /^webhook-delivery: intake cannot listen on 127\.0\.0\.1:\d+: the port is taken[^\n]*\n$/,
  )
  const third = child(t, process.execPath, [
    MAIN,
    '--port',
    '0',
    '--receiver-port',
    receiverPort,
    '--file',
    file,
  ])
  assert.equal(await third.ended, 1)
  assert.match(third.output(), /^webhook-delivery: port \d+ is taken[^\n]*--receiver-port\n$/)
})

run(3)
