import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { DeleteQueueCommand, GetQueueUrlCommand } from '@aws-sdk/client-sqs'
import { createMillrace, defineQueue, hasCode, silentLogger } from 'millrace'
import { type SqsOptions, sqs, sqsPolicy } from 'millrace/sqs'
import { memoryStore } from 'millrace/store'
import { z } from 'zod'
import { type Interference, sdkError, watchedClient } from './sqs-client.ts'
import { freshName } from './sqs-harness.ts'
import { sqsServers } from './sqs-servers.ts'
import { until } from './until.ts'

const servers = sqsServers()

function app(options: SqsOptions, name = freshName()) {
  const orders = defineQueue({
    name,
    owner: 'team-a',
    payload: z.string(),
    retry: { attempts: 2, baseMs: 10 },
    capacity: 'unbounded',
  })
  const common = { store: memoryStore(), queues: [orders], logger: silentLogger }
  return { orders, opening: createMillrace({ ...common, transport: sqs(options) }) }
}

async function refusal(opening: Promise<unknown>): Promise<Error> {
  const error: unknown = await opening.then(
    () => undefined,
    (cause: unknown) => cause,
  )
  assert.ok(error instanceof Error, 'nothing was refused')
  assert.doesNotMatch(error.message, /\n/)
  return error
}

for (const server of servers) {
  test(`${server.name}: all that an app does to a queue in its life is in the policy, and all of the policy is needed.`, async (t) => {
    const { client, calls } = watchedClient(server)
    t.after(() => client.destroy())
    const { orders, opening } = app({ client })
    const running = await opening
    let fails = true
    const begun = Promise.withResolvers<void>()
    running.work(orders, async (message, ctx) => {
      if (message.payload === 'long') {
        begun.resolve()
        await new Promise((resolve) => ctx.signal.addEventListener('abort', resolve))
      }
      if (message.payload === 'flaky' && fails) {
        fails = false
        throw new Error('again')
      }
    })
    await running.start()
    await running.sendBatch(orders, ['a', 'flaky', 'long'])
    await until('two acks', () => (running.counters()[orders.name]?.acked ?? 0) === 2)
    await running.admin.stats(orders)
    await begun.promise
    // What is in hand goes back.
    await running.close({ timeoutMs: 0 })
    const needed = new Set(calls.map(({ action }) => action.replace(/Batch$/, '')))
    const policy = sqsPolicy({
      queues: [orders.name],
      region: 'eu-west-1',
      account: '1'.repeat(12),
    })
    const allowed = policy.Statement.flatMap(({ Action }) => Action)
    assert.deepEqual([...needed].map((action) => `sqs:${action}`).sort(), allowed.toSorted())
  })

  test(`${server.name}: a right that is missing is named, with the queue, by whatever needs it.`, async (t) => {
    const { client, interfere } = watchedClient(server)
    t.after(() => client.destroy())
    const deny =
      (denied: string): Interference =>
      ({ action }) =>
        action === denied
          ? sdkError('AccessDenied', 'User: arn:aws:iam::1:user/x is not authorized', 403)
          : undefined
    interfere(deny('CreateQueue'))
    const first = app({ client })
    const atStart = await refusal(first.opening)
    assert.ok(hasCode(atStart, 'MILLRACE_DENIED'))
    assert.equal(
      atStart.message,
      `sqs: this account may not do sqs:CreateQueue on "${first.orders.name}"; allow it (sqsPolicy of millrace/sqs makes the smallest policy that suffices) (AccessDenied: User: arn:aws:iam::1:user/x is not authorized)`,
    )
    interfere(undefined)
    const { orders, opening } = app({ client })
    const running = await opening
    t.after(() => running.close())
    interfere(deny('SendMessageBatch'))
    const atSend = await refusal(running.send(orders, 'a'))
    assert.ok(hasCode(atSend, 'MILLRACE_DENIED'))
    assert.ok(atSend.message.includes(`may not do sqs:SendMessage on "${orders.name}"`))
    interfere(deny('GetQueueAttributes'))
    const atStats = await refusal(running.admin.stats(orders))
    assert.match(atStats.message, /may not do sqs:GetQueueAttributes on/)
    interfere(() => sdkError('KmsAccessDenied', 'no key'))
    assert.match((await refusal(running.send(orders, 'a'))).message, /is encrypted, .*kms:Gen/)
    interfere(() => sdkError('InvalidClientTokenId', 'unknown', 403))
    assert.match((await refusal(running.send(orders, 'a'))).message, /does not accept these cred/)
  })

  test(`${server.name}: a queue that vanished is told as not there, by sends, stats and health, with what to do.`, async (t) => {
    const { client } = watchedClient(server)
    t.after(() => client.destroy())
    const { orders, opening } = app({ client })
    const running = await opening
    t.after(() => running.close())
    const { QueueUrl } = await client.send(new GetQueueUrlCommand({ QueueName: orders.name }))
    await client.send(new DeleteQueueCommand({ QueueUrl }))
    for (const act of [() => running.send(orders, 'a'), () => running.admin.stats(orders)]) {
      const error = await refusal(act())
      assert.ok(hasCode(error, 'MILLRACE_BACKEND_FAULT'))
      assert.match(error.message, /is not there any more.*make it again/)
    }
    const { reasons } = await running.health()
    assert.match(reasons.join(), /queue ".*" is not there any more at sqs .*make it again/)
  })

  test(`${server.name}: region and credentials come from the SDK's chain: the environment, then a profile.`, async (t) => {
    const { url, keys } = await recording(t, server.url)
    const folder = await mkdtemp(join(tmpdir(), 'millrace-aws-'))
    t.after(() => rm(folder, { recursive: true, force: true }))
    const files = { config: join(folder, 'config'), secrets: join(folder, 'credentials') }
    await writeFile(files.config, '[profile shop]\nregion = eu-central-1\n')
    await writeFile(
      files.secrets,
      '[shop]\naws_access_key_id = OFPROFILE\naws_secret_access_key = s\n',
    )
    const works = async (env: Readonly<Record<string, string>>): Promise<string | undefined> => {
      const restore = setEnv({
        AWS_EC2_METADATA_DISABLED: 'true',
        AWS_CONFIG_FILE: files.config,
        AWS_SHARED_CREDENTIALS_FILE: files.secrets,
        ...env,
      })
      try {
        const { orders, opening } = app({ endpoint: url })
        const running = await opening
        await running.send(orders, 'a')
        await running.close()
        return keys.at(-1)
      } finally {
        restore()
      }
    }
    const own = { AWS_ACCESS_KEY_ID: 'OFENV', AWS_SECRET_ACCESS_KEY: 's', AWS_REGION: 'eu-west-1' }
    assert.equal(await works(own), 'OFENV eu-west-1')
    assert.equal(await works({ AWS_PROFILE: 'shop' }), 'OFPROFILE eu-central-1')
    const none = await refusal(works({ AWS_REGION: 'eu-west-1' }))
    assert.match(none.message, /^sqs: the SDK found no credentials; set AWS_ACCESS_KEY_ID and/)
    const { AWS_REGION: _, ...placeless } = own
    const nowhere = await refusal(works(placeless))
    assert.ok(hasCode(nowhere, 'MILLRACE_INVALID_OPTIONS'))
    assert.match(nowhere.message, /^sqs: no region was given and the SDK found none; pass region/)
  })
}

test('The policy that the README prints is the one that sqsPolicy makes.', async () => {
  const readme = await readFile(
    new URL('../../src/transports/sqs/README.md', import.meta.url),
    'utf8',
  )
  const printed: unknown = JSON.parse(/```json\n([^`]*)```/.exec(readme)?.[1] ?? '')
  const made = sqsPolicy({ queues: ['orders'], region: 'eu-west-1', account: '123456789012' })
  assert.deepEqual(printed, made)
})

/** A server before the stand-in that remembers with which key, and for which region, each request was signed. */
async function recording(t: TestContext, behind: string) {
  const keys: string[] = []
  const server = createServer(async (request, response) => {
    const { authorization = '' } = request.headers
    const [, key, region] = /Credential=([^/]+)\/\d+\/([^/]+)\//.exec(authorization) ?? []
    keys.push(`${key} ${region}`)
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const headers = new Headers()
    for (const name of ['authorization', 'content-type', 'x-amz-target', 'x-amz-date']) {
      const value = request.headers[name]
      if (typeof value === 'string') headers.set(name, value)
    }
    const body = Buffer.concat(chunks)
    const answer = await fetch(new URL(request.url ?? '/', behind), {
      method: 'POST',
      headers,
      body,
    })
    const type = answer.headers.get('content-type') ?? 'application/x-amz-json-1.0'
    response.writeHead(answer.status, { 'content-type': type })
    response.end(Buffer.from(await answer.arrayBuffer()))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}`, keys }
}

/** Every variable of AWS is taken away but these. */
function setEnv(env: Readonly<Record<string, string>>): () => void {
  const before = { ...process.env }
  for (const name of Object.keys(process.env)) if (name.startsWith('AWS_')) delete process.env[name]
  Object.assign(process.env, env)
  return () => {
    for (const name of Object.keys(process.env)) {
      if (name.startsWith('AWS_')) delete process.env[name]
    }
    Object.assign(process.env, before)
  }
}
