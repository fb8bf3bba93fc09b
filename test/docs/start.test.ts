import assert from 'node:assert/strict'
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { readOptions } from '../../examples/webhook-delivery/options.ts'
import { projectFiles, ROOT, read } from '../source-files.ts'
import { fences } from './fences.ts'

const DEADLINE_MS = 60_000

const folder = await mkdtemp(join(tmpdir(), 'millrace-start-'))
const started: ChildProcess[] = []
after(async () => {
  for (const { pid } of started) if (pid !== undefined) endGroup(pid)
  await rm(folder, { recursive: true, force: true })
})

test('README begins with the two commands, and every npm command in it exists.', () => {
  const shell = fences(/^README\.md$/, 'sh').map(({ text }) => text.trim())
  assert.deepEqual(shell.slice(0, 2), ['npm ci && npm start', 'npm ci && npm test'])
  const { scripts }: { scripts: Readonly<Record<string, string>> } = JSON.parse(
    read('package.json'),
  )
  const used = shell.flatMap((text) => [...text.matchAll(/npm (?:run )?([\w:-]+)/g)])
  const unknown = used
    .map(([, name]) => name ?? '')
    .filter((name) => !['ci', 'install', 'pack'].includes(name) && !(name in scripts))
  assert.deepEqual(unknown, [])
})

/** `node` alone is that of the machine, and Node 20 runs no TypeScript; npx finds the one of package.json. */
test('Every command that runs a source file of the repository takes the Node of the repository.', () => {
  const bare = /(?<!npx )\bnode (?:-\S+ )*[\w./-]+\.ts\b/
  const told = projectFiles(/\.md$|^(scripts\/rig|examples\/[\w-]+)\/main\.ts$|-servers\.ts$/)
  assert.deepEqual(
    told.filter((file) => bare.test(read(file))),
    [],
  )
})

test('README names the ports that the example takes by itself.', () => {
  const options = readOptions([])
  assert.ok(options !== 'help')
  const readme = read('README.md')
  const { port, receiverPort } = options
  assert.deepEqual([port, receiverPort], [4000, 4001])
  assert.ok(readme.includes(`http://127.0.0.1:${port}`), 'the intake')
  assert.ok(readme.includes(`127.0.0.1:${receiverPort}`), 'the receiver')
})

/** On free ports: those of README may be taken on the machine of who runs this. */
test('npm start: every printed line can be pasted, and does what it says.', async () => {
  const file = join(folder, 'webhooks.db')
  const args = ['start', '--', '--port', '0', '--receiver-port', '0', '--file', file]
  // A group of its own, so that npm and what it starts can be ended together.
  const child = spawn('npm', args, { cwd: ROOT, detached: true, stdio: ['ignore', 'pipe', 'pipe'] })
  started.push(child)
  let said = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (text) => (said += text))
  await until(
    () => said.includes('webhook-delivery is ready'),
    () => said,
  )
  const hints = said.split('\n').filter((line) => /^(curl|npm|WEBHOOK_FILE=)/.test(line))
  const find = (part: string): string => {
    const found = hints.find((line) => line.includes(part))
    assert.ok(found !== undefined, `no hint with ${part} in ${said}`)
    return found
  }

  for (const path of ['/ok', '/flaky', '/500', '/429', '/410']) {
    const answer = JSON.parse(await paste(find(`${path}"`)))
    assert.equal(typeof answer.id, 'string', path)
    assert.equal(answer.duplicate, false, path)
  }
  await until(
    () => /\/ok .*-> 200/.test(said),
    () => said,
  )
  await until(
    () => /\/flaky .*-> 200/.test(said),
    () => said,
  )
  await until(
    () => /\/429 .*-> 200/.test(said),
    () => said,
  )
  // Two dead letters: 410 at once, 500 after its attempts.
  await until(
    () => said.split('dead letter (').length > 2,
    () => said,
  )
  assert.match(await paste(find('dlq ls')), /evt-410|HTTP_410|410/)
  assert.match(await paste(find('dlq show')), /500|410/)

  await paste(find('/repair'))
  assert.match(await paste(find('dlq redrive')), /2/)
  await until(
    () => /\/500 .*-> 200/.test(said) && /\/410 .*-> 200/.test(said),
    () => said,
  )
  assert.match(await paste(find('stats')), /webhook-deliveries/)

  if (child.pid !== undefined) process.kill(-child.pid, 'SIGTERM')
  await once(child, 'exit')
  assert.match(said, /bye/)
})

/** Runs a line as a shell would; fails when it fails. */
async function paste(line: string): Promise<string> {
  const { NODE_TEST_CONTEXT: _, ...env } = process.env
  const options = { cwd: ROOT, env, timeout: DEADLINE_MS }
  const { stdout } = await promisify(execFile)('sh', ['-c', line], options)
  return stdout
}

async function until(condition: () => boolean, shown: () => string): Promise<void> {
  const endAt = Date.now() + DEADLINE_MS
  while (!condition()) {
    assert.ok(Date.now() < endAt, `not within ${DEADLINE_MS} ms:\n${shown()}`)
    await sleep(20)
  }
}

function endGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL')
  } catch {
    // It has ended by itself.
  }
}
