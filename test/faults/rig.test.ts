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

function answers(url: string): Promise<boolean> {
  const { hostname, port } = new URL(url)
  return new Promise((resolve) => {
    const socket = connect(Number(port), hostname)
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
    socket.once('close', () => socket.destroy()).once('connect', () => socket.destroy())
  })
}

test('signals that repeat stop the servers of the rig once, and leave none behind', {
  timeout: 60_000,
}, async (t) => {
  const rig = child(t, process.execPath, ['scripts/rig/main.ts', 'up'], { env: OWN })
  await rig.says(/pgbouncer: [^\n]*\n(?:export [^\n]*\n)*/)
  const ready = [...rig.output().matchAll(/: ready$/gm)].length
  await rig.says(new RegExp(`(?:^export [\\s\\S]*?){${ready}}`, 'm'))
  const urls = [...rig.output().matchAll(/^export \w+_URL=(.*)$/gm)].map(([, url = '']) => url)
  assert.deepEqual(await Promise.all(urls.map(answers)), Array(ready).fill(true))
  t.diagnostic(`${ready} servers`)
  rig.kill('SIGTERM')
  await rig.says(/^stopping$/m)
  rig.kill('SIGTERM')
  rig.kill('SIGINT')
  assert.equal(await rig.ended, 0)
  assert.deepEqual(await Promise.all(urls.map(answers)), Array(ready).fill(false))
})
