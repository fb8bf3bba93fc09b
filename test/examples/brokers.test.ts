import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { type BackendName, backendUrl } from '../backends.ts'
import { child, root } from './child.ts'

/** Which server of the rig each example runs on. */
const EXAMPLES: readonly (readonly [example: string, server: BackendName])[] = [
  ['redis', 'redis 7'],
  ['rabbitmq', 'rabbitmq'],
  ['nats', 'nats'],
  ['sqs', 'sqs elasticmq'],
  ['kafka', 'kafka'],
]

/** Only SQS reads these; a stand-in takes any. */
const AWS = { AWS_REGION: 'us-east-1', AWS_ACCESS_KEY_ID: 'test', AWS_SECRET_ACCESS_KEY: 'test' }

for (const [example, server] of EXAMPLES) {
  const address = backendUrl(server)
  if (address === undefined) continue
  test(`examples/${example} retries, buries, redrives and ends`, async (t) => {
    const cwd = await mkdtemp(join(tmpdir(), `millrace-${example}-`))
    t.after(() => rm(cwd, { recursive: true, force: true }))
    const main = join(root, 'examples', example, 'main.ts')
    const run = child(t, process.execPath, [main, address], { cwd, env: AWS })
    await run.says(/^dead letter: no piano in stock/m)
    await run.says(/^piano: packed at attempt 1$/m)
    assert.equal(await run.ended, 0, run.output())
    assert.match(run.output(), /^book: packed at attempt 1$/m)
    assert.match(run.output(), /^lamp: packed at attempt 2$/m)
  })
}
