import assert from 'node:assert/strict'
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { type Child, child, eventually, pastEcho, root } from './child.ts'

const BIN = join(root, 'bin', 'millrace.js')

/** An empty folder with these packages installed. */
async function folderWith(
  t: TestContext,
  packages: Readonly<Record<string, string>>,
): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-init-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  await mkdir(join(folder, 'node_modules'))
  for (const [name, path] of Object.entries(packages))
    await symlink(path, join(folder, 'node_modules', name))
  return folder
}

function millrace(t: TestContext, cwd: string, ...args: readonly string[]): Child {
  return child(t, process.execPath, [BIN, ...args], { cwd })
}

const zod = { zod: join(root, 'node_modules', 'zod') }

for (const [installed, packages, packageJson] of [
  ['nothing but millrace, in a package that npm init made', {}, '{ "type": "commonjs" }'],
  ['zod', zod, undefined],
] as const) {
  test(`what init writes runs at once, with ${installed}`, async (t) => {
    const cwd = await folderWith(t, { millrace: root, ...packages })
    if (packageJson !== undefined) await writeFile(join(cwd, 'package.json'), packageJson)
    await writeFile(join(cwd, '.gitignore'), 'dist/\nmillrace.db')
    const init = millrace(t, cwd, 'init')
    assert.equal(await init.ended, 0)
    assert.match(
      init.output(),
      /^wrote greetings\.ts\nwrote millrace\.config\.ts\nwrote \.gitignore\n/,
    )
    assert.match(init.output(), /^ {2}npx millrace start$/m)
    assert.doesNotMatch(init.output(), /npm install/)
    assert.equal(
      await readFile(join(cwd, '.gitignore'), 'utf8'),
      'dist/\nmillrace.db\nnode_modules/\nmillrace.db-wal\nmillrace.db-shm\n',
    )
    const worker = await readFile(join(cwd, 'greetings.ts'), 'utf8')
    assert.equal(worker.includes("from 'zod'"), 'zod' in packages)

    const again = millrace(t, cwd, 'init')
    assert.equal(await again.ended, 2)
    assert.equal(
      again.output(),
      'millrace: millrace.config.ts is there already; nothing was written\n',
    )

    const started = millrace(t, cwd, 'start')
    await started.says(/^\S+ started: working on greetings \(10 at a time\)$/m)
    const sent = millrace(t, cwd, 'send', 'greetings', '{"name":"Ada"}')
    assert.equal(await sent.ended, 0)
    await started.says(/^hello Ada \(attempt 1\)$/m)
    started.kill('SIGTERM')
    assert.equal(await started.ended, 0)
    assert.match(started.output(), /draining[^\n]*\n\S+ stopped\n$/)
    assert.doesNotMatch(started.output(), /Warning/)
  })
}

const SLOW = `
import { defineConfig, defineQueue, defineWorker, PermanentError } from 'millrace'
import { sqlite } from 'millrace/sqlite'
import { z } from 'zod'

const tasks = defineQueue({ name: 'tasks', owner: 'team-x', payload: z.object({ kind: z.string() }) })
const work = defineWorker(tasks, async ({ payload }, ctx) => {
  if (payload.kind === 'broken') throw new PermanentError('cannot be done')
  ctx.signal.addEventListener('abort', () => console.log('told to stop'))
  console.log('running')
  await new Promise((resolve) => setTimeout(resolve, payload.kind === 'slow' ? 1_500 : 1e6))
  console.log('finished')
})
export default defineConfig({ transport: sqlite({ file: 'tasks.db' }), queues: [tasks], workers: [work], intake: { port: 0 } })
`

async function startTasks(
  t: TestContext,
): Promise<{ readonly cwd: string; readonly started: Child }> {
  const cwd = await folderWith(t, { millrace: root, ...zod })
  await writeFile(join(cwd, 'millrace.config.ts'), SLOW)
  const started = millrace(t, cwd, 'start', '--json')
  await started.says(/"event":"started"/)
  return { cwd, started }
}

test('start: the first signal lets finish what runs', async (t) => {
  const { cwd, started } = await startTasks(t)
  const [, intake] = await started.says(/"intake":"([^"]+)"/)
  const sent = await fetch(`${intake}/queues/tasks/messages`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{"kind":"slow"}',
  })
  assert.equal(sent.status, 202)
  await started.says(/running/)
  started.kill('SIGINT')
  assert.equal(await started.ended, 0)
  assert.match(started.output(), /"event":"draining"[\s\S]*finished\n[\s\S]*"event":"stopped"/)
  assert.doesNotMatch(started.output(), /told to stop/)
  const stats = millrace(t, cwd, 'stats', 'tasks', '--json')
  await stats.ended
  assert.match(stats.output(), /"depth":0,.*"inFlight":0/)
})

const GATED = `
import { existsSync } from 'node:fs'
import { defineConfig, defineQueue, defineWorker } from 'millrace'
import { sqlite } from 'millrace/sqlite'
import { z } from 'zod'

const tasks = defineQueue({ name: 'tasks', owner: 'team-x', payload: z.object({ n: z.number() }) })
const work = defineWorker(tasks, async () => {
  console.log('running')
  while (!existsSync('go')) await new Promise((resolve) => setTimeout(resolve, 20))
  console.log('finished')
}, { concurrency: 1 })
export default defineConfig({ transport: sqlite({ file: 'tasks.db' }), queues: [tasks], workers: [work], intake: { port: 0 } })
`

test('start: a worker runs as many as its config says, and the door is closed while they may finish', async (t) => {
  const cwd = await folderWith(t, { millrace: root, ...zod })
  await writeFile(join(cwd, 'millrace.config.ts'), GATED)
  const started = millrace(t, cwd, 'start', '--json')
  const [, intake] = await started.says(/"intake":"([^"]+)"/)
  const send = async (n: number): Promise<number> => {
    const headers = { 'content-type': 'application/json' }
    const url = `${intake}/queues/tasks/messages`
    return (await fetch(url, { method: 'POST', headers, body: JSON.stringify({ n }) })).status
  }
  assert.deepEqual([await send(1), await send(2)], [202, 202])
  await started.says(/running/)
  const stats = millrace(t, cwd, 'stats', 'tasks', '--json')
  await stats.ended
  assert.match(stats.output(), /"depth":1,.*"inFlight":1/)
  started.kill('SIGINT')
  await started.says(/"event":"draining"/)
  await eventually(
    () => send(3).catch(() => 'closed'),
    (answer) => answer === 'closed',
    10_000,
  )
  assert.doesNotMatch(started.output(), /finished/)
  await writeFile(join(cwd, 'go'), '')
  assert.equal(await started.ended, 0)
  assert.equal(started.output().match(/running\n/g)?.length, 1)
})

test('start: the second signal aborts at once, and the message goes back uncounted', async (t) => {
  const { cwd, started } = await startTasks(t)
  const sent = millrace(t, cwd, 'send', 'tasks', '{"kind":"endless"}')
  await sent.ended
  await started.says(/running/)
  started.kill('SIGTERM')
  await started.says(/"event":"draining"/)
  await pastEcho()
  started.kill('SIGTERM')
  assert.equal(await started.ended, 1)
  assert.match(started.output(), /"event":"aborting"[\s\S]*told to stop[\s\S]*"event":"stopped"/)
  const message = millrace(t, cwd, 'message', 'tasks', sent.output().trim(), '--json')
  await message.ended
  const { state, attempt } = JSON.parse(message.output()) as { state: string; attempt: number }
  assert.deepEqual([state, attempt], ['ready', 1])
})

test('start: a dead letter is a line at once, with its owner', async (t) => {
  const { cwd, started } = await startTasks(t)
  await millrace(t, cwd, 'send', 'tasks', '{"kind":"broken"}').ended
  const [line] = await started.says(/^\{.*"event":"error".*\}$/m)
  const { message, owner } = JSON.parse(line) as { message: string; owner: string }
  assert.match(message, /is dead \(permanent\): cannot be done/)
  assert.equal(owner, 'team-x')
})

const BROKEN = `
import { defineConfig, defineQueue } from 'millrace'
import { memory } from 'millrace/memory'
import { z } from 'zod'

const tasks = defineQueue({ name: 'tasks', owner: 'team-x', payload: z.object({}) })
const sound = memory()
const send = async () => { throw new Error('broken') }
const transport = { ...sound, connect: async (context) => ({ ...(await sound.connect(context)), send }) }
const quiet = () => {}
const logger = { debug: quiet, info: quiet, warn: quiet, error: (text) => console.log('the door says', text) }
export default defineConfig({ transport, queues: [tasks], intake: { port: 0, logger } })
`

test("start: an intake with a logger of its own writes there, not to the app's", async (t) => {
  const cwd = await folderWith(t, { millrace: root, ...zod })
  await writeFile(join(cwd, 'millrace.config.js'), BROKEN)
  const started = millrace(t, cwd, 'start', '--json')
  const [, intake] = await started.says(/"intake":"([^"]+)"/)
  const sent = await fetch(`${intake}/queues/tasks/messages`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{}',
  })
  assert.equal(sent.status, 503)
  await started.says(/^the door says intake: /m)
  assert.doesNotMatch(started.output(), /"event":"error"/)
})

test('a config file that never settles is wrong use on one line, not a success', async (t) => {
  const cwd = await folderWith(t, { millrace: root })
  await writeFile(
    join(cwd, 'millrace.config.mjs'),
    'await new Promise(() => {})\nexport default {}\n',
  )
  for (const [json, said] of [
    [[], /^millrace: the command waits for something that will never come[^\n]*\n$/],
    [['--json'], /^\{"error":\{"code":"USAGE","message":"the command waits [^\n]*\n$/],
  ] as const) {
    const stats = millrace(t, cwd, 'stats', ...json)
    assert.equal(await stats.ended, 2)
    assert.match(stats.output(), said)
  }
})

test('a reader that closes the pipe early is no failure', async (t) => {
  const cwd = await folderWith(t, {})
  const piped = child(t, 'sh', ['-c', `"${process.execPath}" "${BIN}" explain-error | head -1`], {
    cwd,
  })
  assert.equal(await piped.ended, 0)
  assert.match(piped.output(), /^FAMILY +CLASS[^\n]*\n$/)
})
