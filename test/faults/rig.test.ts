import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { test } from 'node:test'
import { child } from '../examples/child.ts'

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

function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
    socket.once('connect', () => socket.destroy())
  })
}

test('signals that repeat stop the servers of the rig once, and leave none behind', {
  timeout: 300_000,
}, async (t) => {
  const rig = child(t, process.execPath, ['scripts/rig/main.ts', 'up'], { env: OWN })
  const [, count] = await rig.says(/^(\d+) addresses/m, 240_000)
  await rig.says(new RegExp(`(?:^export [^\\n]*\\n[^]*?){${count}}`, 'm'))
  const addresses = [...rig.output().matchAll(/^export \w+=(.*)$/gm)].map(([, at = '']) => at)
  assert.equal(addresses.length, Number(count))
  const ports = addresses.flatMap(portsOf)
  assert.deepEqual(
    await Promise.all(ports.map(answers)),
    ports.map(() => true),
  )
  t.diagnostic(`${count} addresses`)
  rig.kill('SIGTERM')
  await rig.says(/^stopping$/m)
  rig.kill('SIGTERM')
  rig.kill('SIGINT')
  assert.equal(await rig.ended, 0)
  assert.deepEqual(
    await Promise.all(ports.map(answers)),
    ports.map(() => false),
  )
})
