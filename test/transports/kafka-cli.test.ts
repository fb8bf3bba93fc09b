import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { backendUrl } from '../backends.ts'
import { cli, cliFolder } from './kafka-cli-folder.ts'
import { until } from './until.ts'

const brokers = backendUrl('kafka')

if (brokers !== undefined)
  test('The command line works on Kafka: start, send, stats, dlq ls, show, redrive, audit and doctor.', async (t) => {
    const cwd = await cliFolder(t, { brokers, prefix: `cli-${Date.now().toString(36)}-` })
    const run = (...args: readonly string[]): Promise<string> => millrace(t, cwd, args)

    const started = cli(t, cwd, ['start'])
    await started.says(/started: working on orders/)
    await run('send', 'orders', '{"item":"lamp"}')
    await started.says(/packed lamp/)
    const id = (await run('send', 'orders', '{"item":"piano"}')).trim()
    await until(
      'the dead letter',
      async () => (await run('dlq', 'ls', 'orders')).includes(id),
      60_000,
    )
    assert.match(
      await run('dlq', 'ls', 'orders'),
      new RegExp(`${id} .* permanent .*no piano in stock`),
    )
    assert.match(await run('dlq', 'show', 'orders', id), /^payload +{"item":"piano"}$/m)
    const stats = async () => JSON.parse(await run('stats', 'orders', '--json'))
    assert.equal((await stats()).dead, 1)
    await until('nothing to be left', async () => (await stats()).depth === 0, 60_000)

    await writeFile(join(cwd, 'piano'), '')
    await run('dlq', 'redrive', 'orders', id)
    await started.says(/packed piano/)
    assert.equal((await stats()).dead, 0)
    assert.match(await run('dlq', 'audit', 'orders'), new RegExp(`redrive +${id}`))
    assert.match(await run('doctor'), /backend: kafka, store: sqlite[\s\S]*nothing is wrong/)
    assert.match(await run('doctor'), /^topic ".*orders\.dead" for dead letters: 1 copy, /m)
    started.kill('SIGTERM')
    assert.equal(await started.ended, 0)
  })

/** What it says; it must end well. */
async function millrace(t: TestContext, cwd: string, args: readonly string[]): Promise<string> {
  const one = cli(t, cwd, args)
  assert.equal(await one.ended, 0, `millrace ${args.join(' ')}: ${one.output()}`)
  return one.output()
}
