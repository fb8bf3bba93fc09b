import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { type Child, child } from '../examples/child.ts'

const RIG = 'scripts/rig/main.ts'

/** A server of the tests' own would only be used, and so never stopped. */
const OWN = Object.fromEntries(
  Object.keys(process.env)
    .filter((name) => name.startsWith('MILLRACE_TEST_'))
    .map((name) => [name, undefined]),
)

/** `scheme://host:port/…`, `host:port`, or several of them with commas. */
function portsOf(address: string): readonly number[] {
  return [...address.matchAll(/127\.0\.0\.1:(\d+)/g)].map(([, port]) => Number(port))
}

function foldersOf(rig: Child): readonly string[] {
  const owners = globSync(join(tmpdir(), 'millrace-rig-*', 'owner.pid'))
  return owners.filter((file) => ownerIn(file) === String(rig.pid))
}

/** Those of other rigs come and go. */
function ownerIn(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return undefined
  }
}

function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
    socket.once('connect', () => socket.destroy())
  })
}

interface Running {
  readonly rig: Child
  readonly ports: readonly number[]
}

async function up(t: TestContext, ...args: readonly string[]): Promise<Running> {
  const rig = child(t, process.execPath, [RIG, 'up', ...args], { env: OWN })
  const [, count] = await rig.says(/^(\d+) addresses/m, 240_000)
  await rig.says(new RegExp(`(?:^export [^\\n]*\\n[^]*?){${count}}`, 'm'))
  const addresses = [...rig.output().matchAll(/^export \w+=(.*)$/gm)].map(([, at = '']) => at)
  assert.equal(addresses.length, Number(count))
  assert.notEqual(addresses.length, 0)
  const ports = addresses.flatMap(portsOf)
  assert.deepEqual(
    await Promise.all(ports.map(answers)),
    ports.map(() => true),
  )
  t.diagnostic(`${count} addresses`)
  return { rig, ports }
}

test('signals that repeat stop the servers of the rig once, and leave none behind', {
  timeout: 300_000,
}, async (t) => {
  const { rig, ports } = await up(t)
  rig.kill('SIGTERM')
  await rig.says(/^stopping$/m)
  rig.kill('SIGTERM')
  rig.kill('SIGINT')
  assert.equal(await rig.ended, 0)
  assert.deepEqual(
    await Promise.all(ports.map(answers)),
    ports.map(() => false),
  )
  assert.deepEqual(foldersOf(rig), [])
})

test('what a killed rig left behind is ended and removed by the next', {
  timeout: 120_000,
}, async (t) => {
  const { rig, ports } = await up(t, '--only', 'postgres,redis,nats')
  rig.kill('SIGKILL')
  await rig.ended
  const next = child(t, process.execPath, [RIG, 'down'], { env: OWN })
  assert.equal(await next.ended, 0)
  assert.deepEqual(
    await Promise.all(ports.map(answers)),
    ports.map(() => false),
  )
  assert.deepEqual(foldersOf(rig), [])
})

test('a server that the rig does not know, and a command that is not there, are refused', async (t) => {
  const unknown = child(t, process.execPath, [RIG, 'run', '--only', 'redis,natz', '--', 'true'])
  assert.equal(await unknown.ended, 2)
  assert.match(unknown.output(), /^"natz" is no server of the rig; it knows .*nats/)
  const nothing = child(t, process.execPath, [RIG, 'run', '--only', 'redis'])
  assert.equal(await nothing.ended, 2)
  assert.match(nothing.output(), /^usage: /)
})
