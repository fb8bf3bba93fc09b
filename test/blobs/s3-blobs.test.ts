import assert from 'node:assert/strict'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type TestContext, test } from 'node:test'
import { CreateBucketCommand, PutObjectCommand, type S3Client } from '@aws-sdk/client-s3'
import { createMillrace, defineQueue, hasCode } from 'millrace'
import { type BlobStore, type S3BlobsOptions, s3Blobs } from 'millrace/blobs'
import { memory } from 'millrace/memory'
import { z } from 'zod'
import { type TcpProxy, tcpProxy } from '../faults/tcp-proxy.ts'
import { account } from '../transports/sqs-harness.ts'
import { until } from '../transports/until.ts'
import { blobPromises } from './promises.ts'
import { type S3Server, s3Client, s3Servers } from './s3-servers.ts'

const { signal } = new AbortController()
const run = Math.floor(Math.random() * 2 ** 40).toString(36)
let buckets = 0

const orders = defineQueue({ name: 'orders', owner: 'o', payload: z.string() })

interface Scene {
  readonly bucket: string
  /** Straight to the server. */
  readonly blobs: BlobStore
  readonly client: S3Client
}

async function scene(t: TestContext, server: S3Server, prefix?: string): Promise<Scene> {
  buckets += 1
  const bucket = `millrace-${run}-${buckets}`
  const client = s3Client(server.url)
  t.after(() => client.destroy())
  await client.send(new CreateBucketCommand({ Bucket: bucket }))
  return { bucket, blobs: s3Blobs({ bucket, client, ...(prefix && { prefix }) }), client }
}

for (const server of s3Servers()) {
  const { name } = server
  blobPromises(`s3Blobs, ${name}`, async (t) => (await scene(t, server)).blobs)

  test(`${name}: an address of one's own is enough`, async (t) => {
    const { bucket, blobs } = await scene(t, server)
    const own = s3Blobs({ ...account, endpoint: server.url, bucket })
    await own.put('0001-a', Uint8Array.of(7), signal)
    assert.deepEqual([...((await blobs.get('0001-a', signal)) ?? [])], [7])
    assert.equal(own.name, `s3://${bucket}/millrace-blobs/`)
  })

  test(`${name}: what is no blob is not listed, and what lies under another prefix is not ours`, async (t) => {
    const { bucket, blobs, client } = await scene(t, server, 'ours/')
    const keys = [
      'ours/ a',
      'ours/ b',
      'ours/!c',
      'ours/0001-a',
      'ours/0002-b',
      'other/0001-x',
      'z',
    ]
    for (const Key of keys) {
      await client.send(new PutObjectCommand({ Bucket: bucket, Key, Body: 'x' }))
    }
    // Three pages of at most one: the listing goes on where the page before ended.
    assert.deepEqual(await blobs.list({ before: 'z', max: 1 }, signal), ['0001-a'])
    assert.deepEqual(await blobs.list({ before: 'z', max: 10 }, signal), ['0001-a', '0002-b'])
    const all = s3Blobs({ bucket, client, prefix: '' })
    assert.deepEqual(await all.list({ before: 'zz', max: 10 }, signal), ['z'])
  })

  test(`${name}: more than S3 removes at once are removed`, async (t) => {
    const { blobs } = await scene(t, server)
    const names = Array.from({ length: 1_001 }, (_, n) => `0${10_000 + n}`)
    for (const one of ['010000', '011000']) await blobs.put(one, Uint8Array.of(1), signal)
    await blobs.remove(names, signal)
    assert.deepEqual(await blobs.list({ before: 'z', max: 5_000 }, signal), [])
  })

  test(`${name}: a missing bucket is an error, not a missing blob`, async (t) => {
    const { client } = await scene(t, server)
    const blobs = s3Blobs({ bucket: `absent-${run}`, client })
    await assert.rejects(blobs.get('0001-a', signal), { name: 'NoSuchBucket' })
    await assert.rejects(blobs.list({ before: 'z', max: 1 }, signal), { name: 'NoSuchBucket' })
  })

  test(`${name}: an app whose bucket is missing does not start, and its error names the bucket`, async (t) => {
    const { client } = await scene(t, server)
    const blobs = s3Blobs({ bucket: `absent-${run}`, client })
    const made = createMillrace({ transport: memory(), queues: [orders], claimCheck: { blobs } })
    await assert.rejects(made, (error: unknown) => {
      assert.ok(hasCode(error, 'MILLRACE_UNAVAILABLE'))
      assert.equal(error.retryable, false)
      const said = `s3://absent-${run}/millrace-blobs/: the bucket does not exist, or this account may not see it (NoSuchBucket)`
      assert.ok(error.message.includes(said), error.message)
      assert.doesNotMatch(error.message, /check that it runs/)
      return true
    })
  })

  test(`${name}: a removal that failed in part is an error`, async (t) => {
    const { blobs, client } = await scene(t, server)
    client.middlewareStack.add(
      (next, context) => async (args) => {
        if (context.commandName !== 'DeleteObjectsCommand') return next(args)
        const Errors = [
          { Key: 'a', Code: 'NoSuchKey' },
          { Key: 'b', Code: 'AccessDenied', Message: 'no' },
        ]
        return { response: {}, output: { $metadata: {}, Errors } }
      },
      { step: 'initialize' },
    )
    await assert.rejects(blobs.remove(['0001-a', '0002-b'], signal), /AccessDenied of b \(no\)/)
  })

  test(`${name}: a body that is cut off is no body`, async (t) => {
    const { bucket, blobs } = await scene(t, server)
    const body = new Uint8Array(8_000_000).fill(1)
    await blobs.put('0001-a', body, signal)
    const proxy = await proxyTo(t, server)
    const client = s3Client(`http://127.0.0.1:${proxy.port}`)
    t.after(() => client.destroy())
    let cuts = 0
    client.middlewareStack.add(
      (next) => async (args) => {
        const answer = await next(args)
        if (cuts++ === 0) proxy.cut()
        return answer
      },
      { step: 'deserialize', priority: 'low' },
    )
    proxy.slow(20)
    const far = s3Blobs({ bucket, client })
    await assert.rejects(far.get('0001-a', signal))
    await proxy.heal()
    assert.equal((await far.get('0001-a', signal))?.byteLength, body.byteLength)
  })

  test(`${name}: a put that is cut off leaves nothing, and the next try puts it`, async (t) => {
    const { bucket, blobs } = await scene(t, server)
    const proxy = await proxyTo(t, server)
    const client = s3Client(`http://127.0.0.1:${proxy.port}`)
    t.after(() => client.destroy())
    const far = s3Blobs({ bucket, client })
    const body = new Uint8Array(8_000_000).fill(1)
    // Nothing comes through: the server cannot have the whole body.
    proxy.block('up')
    const rejected = assert.rejects(far.put('0002-b', body, signal))
    await until('a connection', () => proxy.open() === 1)
    proxy.cut()
    await rejected
    const found = await blobs.get('0002-b', signal)
    assert.equal(found, undefined)
    proxy.refuse()
    await assert.rejects(far.put('0002-b', body, signal), { code: 'ECONNREFUSED' })
    await proxy.heal()
    await far.put('0002-b', body, signal)
    assert.equal((await blobs.get('0002-b', signal))?.byteLength, body.byteLength)
  })

  test(`${name}: a call into a hole ends with its signal`, async (t) => {
    const { bucket } = await scene(t, server)
    const proxy = await proxyTo(t, server)
    const client = s3Client(`http://127.0.0.1:${proxy.port}`)
    t.after(() => client.destroy())
    const blobs = s3Blobs({ bucket, client })
    await blobs.put('0001-a', Uint8Array.of(1), signal)
    proxy.blackHole()
    const ends = (): AbortSignal => AbortSignal.timeout(200)
    await assert.rejects(blobs.get('0001-a', ends()), { name: 'AbortError' })
    await assert.rejects(blobs.put('0001-a', Uint8Array.of(2), ends()), { name: 'AbortError' })
    await assert.rejects(blobs.remove(['0001-a'], ends()), { name: 'AbortError' })
    await assert.rejects(blobs.list({ before: 'z', max: 1 }, ends()), { name: 'AbortError' })
  })

  test(`${name}: 503 now and then is waited out by the client; 503 for good is an error`, async (t) => {
    const { bucket, blobs } = await scene(t, server)
    const busy = await busyServer(t, server)
    const far = s3Blobs({ ...account, endpoint: busy.url, bucket })
    busy.refuse(2)
    await far.put('0001-a', Uint8Array.of(1), signal)
    assert.deepEqual([...((await blobs.get('0001-a', signal)) ?? [])], [1])
    busy.refuse(1_000)
    const called = far.get('0001-a', signal)
    await assert.rejects(called, { name: 'SlowDown' })
    busy.refuse(0)
    assert.deepEqual([...((await far.get('0001-a', signal)) ?? [])], [1])
  })
}

async function proxyTo(t: TestContext, { url }: S3Server): Promise<TcpProxy> {
  const proxy = await tcpProxy(Number(new URL(url).port))
  t.after(() => proxy.close())
  return proxy
}

const SLOW_DOWN =
  '<?xml version="1.0"?><Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>'

/** Answers so many requests as S3 does when it is busy, and passes on the others. */
async function busyServer(
  t: TestContext,
  server: S3Server,
): Promise<{ readonly url: string; refuse(count: number): void }> {
  let refusals = 0
  const busy = createServer((asked, answer) => {
    if (refusals > 0) {
      refusals -= 1
      asked.resume()
      asked.once('end', () =>
        answer.writeHead(503, { 'content-type': 'application/xml' }).end(SLOW_DOWN),
      )
      return
    }
    const { method, headers } = asked
    const passed = request(new URL(asked.url ?? '/', server.url), { method, headers }, (got) => {
      answer.writeHead(got.statusCode ?? 500, got.headers)
      got.pipe(answer)
    })
    asked.pipe(passed)
  })
  t.after(() => busy.closeAllConnections())
  t.after(() => busy.close())
  await new Promise<void>((resolve) => busy.listen(0, '127.0.0.1', resolve))
  const { port } = busy.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    refuse: (count) => {
      refusals = count
    },
  }
}

test('s3Blobs: a name never leaves the prefix', async () => {
  const blobs = s3Blobs({ bucket: 'shop', ...account })
  for (const name of ['../a', '.', '..', 'a/b', '', 'a'.repeat(201)]) {
    await assert.rejects(async () => blobs.get(name, signal), /cannot be the name of a blob/, name)
  }
})

test('s3Blobs: wrong options are refused, all at once', () => {
  const given = s3Client('http://127.0.0.1:1')
  const wrong: readonly (readonly [S3BlobsOptions, RegExp])[] = [
    [{ bucket: '' }, /bucket: expected the name of a bucket/],
    [{ bucket: 'shop/blobs' }, /bucket: expected the name of a bucket/],
    [{ bucket: 'shop--euw1-az1--x-s3' }, /directory bucket/],
    [{ bucket: 'shop', prefix: 'blobs' }, /prefix: expected/],
    [{ bucket: 'shop', prefix: '/blobs/' }, /prefix: expected/],
    [{ bucket: 'shop', maxBytes: 0 }, /maxBytes: expected an integer/],
    [{ bucket: 'shop', region: '' }, /region: expected/],
    [{ bucket: 'shop', client: given, region: 'eu-west-1' }, /region: the client has its own/],
    [{ bucket: '', endpoint: 'nowhere' }, /bucket: .*; endpoint: expected an address/],
  ]
  for (const [options, what] of wrong) {
    assert.throws(
      () => s3Blobs(options),
      (error) => hasCode(error, 'MILLRACE_INVALID_OPTIONS') && what.test(String(error)),
      String(what),
    )
  }
  given.destroy()
})
