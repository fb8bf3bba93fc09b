import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { CreateBucketCommand } from '@aws-sdk/client-s3'
import { createMillrace, defineQueue, hasCode, PermanentError, silentLogger } from 'millrace'
import { type BlobStore, fileBlobs, s3Blobs } from 'millrace/blobs'
import { memory } from 'millrace/memory'
import { postgres } from 'millrace/postgres'
import { sqlite } from 'millrace/sqlite'
import { sqs } from 'millrace/sqs'
import { memoryStore } from 'millrace/store'
import { z } from 'zod'
import { s3Client, s3Servers } from '../blobs/s3-servers.ts'
import { tcpProxy } from '../faults/tcp-proxy.ts'
import { dropSchema, freshSchema, nodePool, postgresServers } from './postgres-servers.ts'
import { databaseFile } from './sqlite-harness.ts'
import { account, freshName } from './sqs-harness.ts'
import { sqsServers } from './sqs-servers.ts'
import { until } from './until.ts'

/** More than SQS takes. */
const LARGE = 'x'.repeat(3_000_000)
const payload = z.object({ text: z.string() })
const { signal } = new AbortController()

async function freshBlobs(t: TestContext): Promise<BlobStore> {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-blobs-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  return fileBlobs({ folder })
}

for (const server of sqsServers()) {
  for (const kind of ['standard', 'fifo'] as const) {
    test(`${server.name}, ${kind}: a payload above the limit of SQS is sent, dies, is shown and redriven`, async (t) => {
      const queue = defineQueue({ name: freshName(), owner: 'team', payload })
      const app = await createMillrace({
        transport: sqs({ ...account, endpoint: server.url, kind }),
        store: memoryStore(),
        queues: [queue],
        logger: silentLogger,
        claimCheck: { blobs: await freshBlobs(t) },
      })
      t.after(() => app.close({ timeoutMs: 5_000 }))
      const got: number[] = []
      let isMended = false
      app.work(queue, (message) => {
        if (!isMended) throw new PermanentError('not yet')
        got.push(message.payload.text.length)
      })
      await app.start()
      const { id } = await app.send(queue, { text: LARGE })
      const letters = async () => (await app.admin.deadLetters.list(queue)).items
      await until('the dead letter', async () => (await letters()).length === 1)
      assert.deepEqual((await letters())[0]?.payload, { text: LARGE })
      isMended = true
      await app.admin.deadLetters.redrive(queue, { ids: [id] })
      await until('the redriven one', () => got.length === 1)
      assert.deepEqual(got, [LARGE.length])
    })
  }
}

for (const { name, url } of s3Servers()) {
  test(`S3, ${name}: a body waits for its store without blame, and one that is gone makes a dead letter`, async (t) => {
    const bucket = `millrace-${freshName()}`
    const direct = s3Client(url)
    const proxy = await tcpProxy(Number(new URL(url).port))
    const client = s3Client(`http://127.0.0.1:${proxy.port}`)
    await direct.send(new CreateBucketCommand({ Bucket: bucket }))
    const queue = defineQueue({ name: 'large', owner: 'team', payload, retry: { attempts: 1 } })
    const options = {
      transport: memory(),
      queues: [queue],
      logger: silentLogger,
      claimCheck: { blobs: s3Blobs({ bucket, client }) },
    }
    const absent = { blobs: s3Blobs({ bucket: `${bucket}-not`, client }) }
    await assert.rejects(createMillrace({ ...options, claimCheck: absent }), /NoSuchBucket/)
    const app = await createMillrace(options)
    t.after(async () => {
      await app.close({ timeoutMs: 5_000 })
      await proxy.close()
      for (const one of [client, direct]) one.destroy()
    })
    const attempts: number[] = []
    app.work(queue, (message) => {
      assert.equal(message.payload.text, LARGE)
      attempts.push(message.attempt)
    })
    await app.send(queue, { text: LARGE })
    proxy.refuse()
    proxy.cut()
    await assert.rejects(app.send(queue, { text: LARGE }), (error) =>
      hasCode(error, 'MILLRACE_UNAVAILABLE'),
    )
    await app.start()
    await until('health says so', async () =>
      (await app.health()).reasons.some((reason) => reason.includes('could not be fetched')),
    )
    await proxy.heal()
    await until('the message', () => attempts.length === 1)
    assert.deepEqual(attempts, [1])
    await app.admin.pause(queue)
    await app.send(queue, { text: LARGE })
    const blobs = s3Blobs({ bucket, client: direct })
    await blobs.remove(await blobs.list({ before: 'z', max: 10 }, signal), signal)
    await app.admin.resume(queue)
    const letters = async () => (await app.admin.deadLetters.list(queue)).items
    await until('the dead letter', async () => (await letters()).length === 1)
    assert.match((await letters())[0]?.reason ?? '', /there is no blob .* in s3:/)
  })
}

const [server] = postgresServers()
if (server !== undefined) {
  test(`${server.name}: a reference is sent in the transaction of the caller, and vanishes with it`, async (t) => {
    const schema = freshSchema()
    const pool = nodePool(server.url)
    const blobs = await freshBlobs(t)
    const queue = defineQueue({ name: 'large', owner: 'team', payload })
    const app = await createMillrace({
      transport: postgres({ pool, schema }),
      queues: [queue],
      logger: silentLogger,
      claimCheck: { blobs },
    })
    const client = await pool.connect()
    try {
      for (const end of ['ROLLBACK', 'COMMIT']) {
        await client.query('BEGIN')
        await app.send(queue, { text: LARGE }, { id: end, tx: client })
        await client.query(end)
      }
      assert.equal(await app.admin.messages.get(queue, 'ROLLBACK'), null)
      const shown = await app.admin.messages.get(queue, 'COMMIT')
      assert.deepEqual(shown?.payload, { text: LARGE })
      const names = await blobs.list({ before: 'z', max: 10 }, signal)
      assert.equal(names.length, 2, 'what was rolled back is left to the sweep')
    } finally {
      client.release()
      await app.close()
      await dropSchema(server.url, schema)
      await pool.end()
    }
  })
}

test('sqlite: a synchronous transaction takes a payload whole, and refuses what the transport does not take', async (t) => {
  const { file, dispose } = await databaseFile()
  t.after(dispose)
  const { DatabaseSync } = await import('node:sqlite')
  const blobs = await freshBlobs(t)
  const queue = defineQueue({ name: 'large', owner: 'team', payload })
  const app = await createMillrace({
    transport: sqlite({ file }),
    queues: [queue],
    logger: silentLogger,
    claimCheck: { blobs },
  })
  const database = new DatabaseSync(file)
  try {
    const sent = (text: string): Promise<unknown> => {
      database.exec('BEGIN IMMEDIATE')
      try {
        return app.send(queue, { text }, { tx: database })
      } finally {
        database.exec('COMMIT')
      }
    }
    await sent('x'.repeat(100_000))
    const large = { text: 'x'.repeat(20_000_000) }
    database.exec('BEGIN IMMEDIATE')
    await assert.rejects(app.sendBatch(queue, [{ text: 'a' }, large], { tx: database }), {
      code: 'MILLRACE_PAYLOAD_TOO_LARGE',
      message:
        /^payload 1 of .* has 20000011 bytes, the transport takes 16777216; in a transaction/,
    })
    database.exec('ROLLBACK')
    await assert.rejects(sent('x'.repeat(60_000_000)), {
      code: 'MILLRACE_PAYLOAD_TOO_LARGE',
      message: /has 60000011 bytes, the transport takes 16777216; in a transaction .* without tx/,
    })
    assert.equal((await app.admin.stats(queue)).depth, 1)
    assert.deepEqual(await blobs.list({ before: 'z', max: 10 }, signal), [])
  } finally {
    database.close()
    await app.close()
  }
})
