import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { type BackendName, backendUrl } from '../backends.ts'
import { atHome } from '../depth.ts'
import { type Child, child, eventually, paste } from './child.ts'

const MAIN = 'examples/webhook-delivery/main.ts'
const SERVERS: readonly BackendName[] = ['redis 7', 'rabbitmq', 'nats', 'postgres 18']
/** A store and a broker; each takes ten starts of a process. */
const AT_HOME: readonly BackendName[] = ['redis 7', 'rabbitmq']

describe('webhook-delivery on servers', { concurrency: 2 }, () => {
  for (const server of SERVERS) {
    const address = backendUrl(server)
    if (address === undefined) continue
    const title = `the webhook example does the same on ${server}`
    if (atHome && !AT_HOME.includes(server)) {
      test(title, { skip: `left out at home: ${title}; with MILLRACE_DEPTH=full` }, () => {})
      continue
    }
    test(title, async (t) => {
      const app = await start(t, address)
      assert.doesNotMatch(app.output(), /:[^:/@\s]+@/, 'no password is printed')
      // On a server that lives longer than this run, ids of another run would count as known.
      const run = process.pid
      for (const path of ['ok', 'flaky', '410']) {
        const line = printed(app, `${path}"`).replaceAll(`evt-${path}`, `evt-${path}-${run}`)
        assert.equal(JSON.parse(await paste(t, line)).duplicate, false, path)
      }
      await app.says(/\/ok .*-> 200/)
      await app.says(/\/flaky .*\(time 3\) -> 200/)
      await app.says(/dead letter \(permanent\)/)
      const env = { WEBHOOK_TRANSPORT: address }
      assert.match(await command(t, env, printed(app, 'dlq ls')), /permanent/)
      assert.match(await command(t, env, printed(app, 'dlq show')), /answered 410/)
      await paste(t, printed(app, '/repair'))
      assert.match(await command(t, env, printed(app, 'dlq redrive')), /^moved 1 of 1$/m)
      await app.says(/\/410 .*\(time 2\) -> 200/)
      await eventually(
        () => command(t, env, printed(app, 'dlq ls')),
        (listed) => !listed.includes('permanent'),
      )
      assert.match(await command(t, env, printed(app, 'stats')), /webhook-deliveries/)
      app.kill('SIGINT')
      assert.equal(await app.ended, 0)
      assert.match(app.output(), /draining[\s\S]*bye\n$/)
    })
  }
})

async function start(t: TestContext, address: string): Promise<Child> {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-example-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  const ports = ['--port', '0', '--receiver-port', '0']
  const place = ['--file', join(folder, 'store.db'), '--transport', address]
  const app = child(t, process.execPath, [MAIN, ...ports, ...place])
  await app.says(/is ready: /)
  return app
}

/** The printed command that has these words, as it is. */
function printed(app: Child, words: string): string {
  const lines = app.output().split('\n')
  const line = lines.find((one) => !one.startsWith('#') && one.includes(words))
  assert.ok(line !== undefined, `no line with ${words} in ${app.output()}`)
  return line
}

/** As a person would paste it, who has said the address when the example asked for that. */
async function command(
  t: TestContext,
  env: Readonly<Record<string, string>>,
  line: string,
): Promise<string> {
  const shell = child(t, 'sh', ['-c', line], { env })
  assert.equal(await shell.ended, 0, `${line}\n${shell.output()}`)
  return shell.output()
}
