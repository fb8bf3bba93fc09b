import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { createClient } from '@redis/client'
import { type RedisOptions, redis } from 'millrace/redis'
import { messageOfError } from '../../src/model/describe-error.ts'
import { silentLogger } from '../../src/model/logger.ts'
import { type Bench, connectTo, envelope, open, signal, subscribeTo } from './redis-bench.ts'
import { NO_REDIS, redisCluster, redisServers } from './redis-servers.ts'
import { until } from './until.ts'

const servers = redisServers()
if (servers.length === 0) test('redis, details', { skip: NO_REDIS }, () => {})

for (const { name, url } of servers) {
  describe(`${name}, details`, () => {
    test('A bare entry of another producer is a message: its id is the entry id, its fields are the payload.', () =>
      bareEntry(url))
    test('A foreign entry with a body keeps it, and survives release, death and redrive.', () =>
      foreignLife(url))
    test('An entry that is deleted while a worker holds it becomes a dead letter that says so.', () =>
      bodyLost(url))
    test('Entries that are trimmed or deleted before a worker has them become dead letters, and their places are free again.', () =>
      trimmed(url))
    test('Settling an entry that somebody deleted is settled, and a release of it is a dead letter.', () =>
      settleLost(url))
    test('When all is done nothing is left but the queue itself: no consumer, no entry, no id.', () =>
      nothingLeft(url))
    test('A server that forgot the scripts gets them again.', () => forgottenScripts(url))
    test('A client that was given stays open and is never used for listening.', () =>
      givenClient(url))
    test('Of two renewed parts of one batch each keeps its own lease.', () => renewedParts(url))
    test('Whichever key somebody deletes, what is sent afterwards is handled.', () =>
      deletedKeys(url))
    test('A queue that a newer version has laid out is refused.', () => newerLayout(url))
    test('A queue that another group reads is refused, each queue by name.', () => otherGroup(url))
    test('What durability rests on is told as the server has it.', () => told(url))
    test('Claims that vanished workers left empty are swept.', () => emptyClaims(url))
  })
}

test('Names with braces get keys of their own, with one hash tag each.', async (t) => {
  const [server] = servers
  if (server === undefined) return t.skip(NO_REDIS)
  const bench = await open(server.url)
  const names = ['a', '{a}', '}a', 'a}:b', '%7ba%7d']
  for (const name of names) {
    await bench.transport.topology.ensure([{ name, owner: 'team', maxDepth: undefined }], signal)
    await bench.transport.send(name, [envelope('m')], { signal })
  }
  for (const name of names) assert.equal((await bench.transport.browse?.gauge(name))?.depth, 1)
  const keys = await bench.raw.sendCommand(['KEYS', `{${bench.prefix}:*`])
  assert.ok(Array.isArray(keys))
  for (const key of keys) assert.match(key, /^\{[^{}]+\}:[a-z:]+$/)
})

test('All that is wrong with the options is said at once, and no secret with it.', () => {
  const wrong: readonly (readonly [unknown, readonly RegExp[]])[] = [
    [{}, [/expected one of url, client, sentinels, cluster, got none/]],
    [{ url: undefined }, [/url: undefined; is the environment variable set\?/]],
    [{ url: 'redis://a', cluster: [] }, [/got url and cluster/]],
    [
      { url: 'http://u:geheim@h', prefx: 'a' },
      [/text without redis:/, /"prefx", did you mean "prefix"/],
    ],
    [{ url: 'redis://u:geheim#x@h:port' }, [/percent-encoded/]],
    [
      { url: 'redis://a', prefix: 'a{b}', group: '', pollMs: 1 },
      [/prefix: /, /group: /, /pollMs: /],
    ],
    [{ url: 'redis://a', timeoutMs: 'long', listen: 1 }, [/timeoutMs: /, /listen: /]],
    [{ client: {} }, [/client: expected a client of redis or @redis\/client/]],
    [{ cluster: ['redis://a', 'b'] }, [/cluster\[1\]: /]],
    [{ sentinels: { nodes: [{ host: 1 }] } }, [/sentinels.name: /, /sentinels.nodes: /]],
  ]
  for (const [options, patterns] of wrong) {
    assert.throws(
      () => redis(options as RedisOptions),
      (error) => {
        const message = messageOfError(error)
        for (const pattern of patterns) assert.match(message, pattern)
        assert.doesNotMatch(message, /geheim/)
        return true
      },
    )
  }
})

test('A node of a cluster that is given as one server is refused with the way out.', async (t) => {
  const cluster = redisCluster()
  if (cluster === undefined) return t.skip(NO_REDIS)
  await assert.rejects(connectTo({ url: cluster[0] ?? '' }), /pass \{ cluster: /)
})

test('Nobody there is said at once, without the password.', async () => {
  const error = await connectTo({ url: 'redis://u:geheim@127.0.0.1:1' }).catch((e: unknown) => e)
  assert.match(messageOfError(error), /cannot connect to Redis .*ECONNREFUSED/)
  assert.doesNotMatch(messageOfError(error), /geheim/)
})

async function bareEntry(url: string): Promise<void> {
  const bench = await open(url)
  const entryId = await bench.raw.sendCommand([
    'XADD',
    bench.key('ready'),
    '*',
    'n',
    '1',
    'to',
    'x',
  ])
  const found = await bench.transport.browse?.get?.('q', String(entryId))
  assert.equal(found?.state, 'ready')
  const subscription = await subscribeTo(bench.transport)
  const [delivery] = await subscription.receive({ max: 5, waitMs: 0, signal })
  assert.equal(delivery?.envelope.id, entryId)
  assert.equal(Buffer.from(delivery?.envelope.body ?? []).toString(), '{"n":"1","to":"x"}')
  assert.equal(delivery?.deliveries, 1)
  assert.ok(delivery)
  const [done] = await subscription.settle([{ as: 'acked', delivery }])
  assert.equal(done?.ok, true)
  await left(bench)
}

async function foreignLife(url: string): Promise<void> {
  const bench = await open(url)
  const body = Buffer.from([0, 255, 10, 13])
  await bench.transport.send('q', [envelope('first', { body, headers: { a: 'b' } })], { signal })
  const client = createClient({ url })
  await client.connect()
  const entryId = await client.sendCommand([
    'XADD',
    bench.key('ready'),
    '*',
    'body',
    body,
    'headers',
    'no json',
  ])
  client.destroy()
  const subscription = await subscribeTo(bench.transport)
  const batch = await subscription.receive({ max: 5, waitMs: 0, signal })
  assert.deepEqual(
    batch.map(({ envelope: { id } }) => id),
    ['first', entryId],
  )
  await subscription.settle(
    batch.map((delivery) => ({ as: 'released', delivery, delayMs: 0, counted: true }) as const),
  )
  const again = await subscription.receive({ max: 5, waitMs: 0, signal })
  assert.deepEqual(
    again.map(({ deliveries, history }) => [deliveries, history.counted]),
    [
      [2, 1],
      [2, 1],
    ],
  )
  await subscription.settle(
    again.map(
      (delivery) => ({ as: 'dead', delivery, reason: 'no', errorClass: 'permanent' }) as const,
    ),
  )
  const moved = await bench.transport.shelf?.redrive('q', [String(entryId)], {
    actor: 'a',
    reason: 'r',
  })
  assert.deepEqual(moved, [entryId])
  const [back] = await subscription.receive({ max: 5, waitMs: 0, signal })
  assert.deepEqual([...(back?.envelope.body ?? [])], [...body])
  assert.equal(back?.envelope.id, entryId)
  assert.equal(back?.history.redrives, 1)
}

async function bodyLost(url: string): Promise<void> {
  const bench = await open(url)
  await bench.transport.send('q', [envelope('kept'), envelope('gone')], { signal })
  const subscription = await subscribeTo(bench.transport, 200)
  assert.equal((await subscription.receive({ max: 2, waitMs: 0, signal })).length, 2)
  const [, entry] = await entries(bench, 'ready')
  await bench.raw.sendCommand(['XDEL', bench.key('ready'), String(entry)])
  const back: string[] = []
  await until('the sweep', async () => {
    const got = await subscription.receive({ max: 2, waitMs: 100, signal })
    back.push(...got.map(({ envelope: { id } }) => id))
    await subscription.settle(got.map((delivery) => ({ as: 'acked', delivery })))
    return (await bench.transport.browse?.gauge('q'))?.dead === 1
  })
  await until('the other one', async () => {
    const got = await subscription.receive({ max: 2, waitMs: 50, signal })
    back.push(...got.map(({ envelope: { id } }) => id))
    await subscription.settle(got.map((delivery) => ({ as: 'acked', delivery })))
    return back.length === 1
  })
  assert.deepEqual(back, ['kept'])
  const letter = await bench.transport.shelf?.get('q', 'gone')
  assert.match(letter?.reason ?? '', /^body lost/)
  assert.equal(letter?.history.crashes, 1)
  await left(bench)
}

async function settleLost(url: string): Promise<void> {
  const bench = await open(url)
  await bench.transport.send('q', [envelope('a'), envelope('b'), envelope('c')], { signal })
  const subscription = await subscribeTo(bench.transport)
  const [a, b, c] = await subscription.receive({ max: 3, waitMs: 0, signal })
  assert.ok(a && b && c)
  await bench.raw.sendCommand(['XTRIM', bench.key('ready'), 'MAXLEN', '0'])
  const outcomes = await subscription.settle([
    { as: 'acked', delivery: a },
    { as: 'released', delivery: b, delayMs: 0, counted: true },
    { as: 'dead', delivery: c, reason: 'no such order', errorClass: 'permanent' },
  ])
  assert.deepEqual(
    outcomes.map(({ ok }) => ok),
    [true, true, true],
  )
  assert.match((await bench.transport.shelf?.get('q', 'b'))?.reason ?? '', /^body lost/)
  assert.match(
    (await bench.transport.shelf?.get('q', 'c'))?.reason ?? '',
    /^body lost.*no such order$/,
  )
  await left(bench)
}

async function nothingLeft(url: string): Promise<void> {
  const bench = await open(url)
  const sent = Array.from({ length: 250 }, (_, n) =>
    envelope(`m${n}`, n % 5 === 0 ? { delayMs: 20 } : {}),
  )
  await bench.transport.send('q', sent, { signal })
  const subscription = await subscribeTo(bench.transport)
  let done = 0
  await until('all', async () => {
    const batch = await subscription.receive({ max: 40, waitMs: 50, signal })
    const half = batch.map((delivery, n) =>
      n % 7 === 0 && delivery.deliveries === 1
        ? ({ as: 'released', delivery, delayMs: n, counted: true } as const)
        : ({ as: 'acked', delivery } as const),
    )
    await subscription.settle(half)
    done += half.filter(({ as }) => as === 'acked').length
    return done === sent.length
  })
  await left(bench)
}

/** What must be empty when a queue has nothing to do. */
async function left(bench: Bench): Promise<void> {
  const { raw, key } = bench
  for (const stream of ['ready', 'suspects']) {
    assert.equal(await raw.sendCommand(['XLEN', key(stream)]), 0, stream)
    const consumers = await raw.sendCommand(['XINFO', 'CONSUMERS', key(stream), 'millrace'])
    assert.deepEqual(consumers, [], stream)
  }
  for (const gone of ['ids', 'parked', 'claims', 'scheduled']) {
    assert.equal(await raw.sendCommand(['EXISTS', key(gone)]), 0, gone)
  }
}

async function entries(bench: Bench, stream: string): Promise<readonly unknown[]> {
  const reply = await bench.raw.sendCommand(['XRANGE', bench.key(stream), '-', '+'])
  assert.ok(Array.isArray(reply))
  return reply.map((entry) => entry[0])
}

async function forgottenScripts(url: string): Promise<void> {
  const bench = await open(url)
  await bench.raw.sendCommand(['SCRIPT', 'FLUSH'])
  const [sent] = await bench.transport.send('q', [envelope('a')], { signal })
  assert.equal(sent?.ok, true)
}

async function givenClient(url: string): Promise<void> {
  const client = createClient({ url })
  await client.connect()
  const bench = await open(url)
  const far = await connectTo({ client, prefix: bench.prefix })
  const subscription = await subscribeTo(far)
  const waiting = subscription.receive({ max: 1, waitMs: 10_000, signal })
  await bench.transport.send('q', [envelope('a')], { signal })
  assert.equal((await waiting).length, 1)
  assert.equal(await client.sendCommand(['PING']), 'PONG')
  await far.close()
  assert.equal(await client.sendCommand(['PING']), 'PONG')
  await client.close()
}

async function renewedParts(url: string): Promise<void> {
  const bench = await open(url)
  await bench.transport.send(
    'q',
    ['a', 'b', 'c', 'd'].map((id) => envelope(id)),
    { signal },
  )
  const subscription = await subscribeTo(bench.transport, 300)
  const [a, b, c, d] = await subscription.receive({ max: 4, waitMs: 0, signal })
  assert.ok(a && b && c && d)
  const renew = subscription.renew
  assert.ok(renew)
  assert.deepEqual(
    (await renew([a, b], 60_000)).map(({ ok }) => ok),
    [true, true],
  )
  assert.deepEqual(
    (await renew([b], 60_000)).map(({ ok }) => ok),
    [true],
  )
  const far = await bench.another()
  const elsewhere = await subscribeTo(far)
  const back: string[] = []
  await until('c and d', async () => {
    const got = await elsewhere.receive({ max: 4, waitMs: 100, signal })
    back.push(...got.map(({ envelope: { id } }) => id))
    await elsewhere.settle(got.map((delivery) => ({ as: 'acked', delivery })))
    return back.length >= 2
  })
  assert.deepEqual(back.sort(), ['c', 'd'])
  const outcomes = await subscription.settle(
    [a, b, c].map((delivery) => ({ as: 'acked', delivery })),
  )
  assert.deepEqual(
    outcomes.map(({ ok }) => ok),
    [true, true, false],
  )
  await left(bench)
}

async function emptyClaims(url: string): Promise<void> {
  const bench = await open(url)
  await bench.transport.send('q', [envelope('a')], { signal })
  const subscription = await subscribeTo(bench.transport, 100)
  await subscription.receive({ max: 1, waitMs: 0, signal })
  assert.equal(await bench.transport.browse?.cancel?.('q', 'a'), true)
  await until('the sweep', async () => {
    await subscription.receive({ max: 1, waitMs: 50, signal })
    return (await bench.raw.sendCommand(['EXISTS', bench.key('claims')])) === 0
  })
  await left(bench)
}

async function trimmed(url: string): Promise<void> {
  const errors: string[] = []
  const logger = { ...silentLogger, error: (line: string) => void errors.push(line) }
  const bench = await open(url, { maxDepth: 6 })
  const transport = await connectTo({ url, prefix: bench.prefix }, logger)
  try {
    const ids = ['a', 'b', 'c', 'd', 'e']
    const batch = ids.map((id) => envelope(id))
    await transport.send('q', [...batch, envelope('f', { delayMs: 3_600_000 })], { signal })
    const subscription = await subscribeTo(transport)
    const [held] = await subscription.receive({ max: 1, waitMs: 1_000, signal })
    // The one in hand, and three that nobody had.
    await bench.raw.sendCommand(['XTRIM', bench.key('ready'), 'MAXLEN', '1'])
    await bench.raw.sendCommand(['DEL', bench.key('scheduled')])
    const [left] = await subscription.receive({ max: 10, waitMs: 1_000, signal })
    assert.deepEqual([held?.envelope.id, left?.envelope.id], ['a', 'e'])
    assert.deepEqual(await subscription.receive({ max: 1, waitMs: 100, signal }), [])
    const shelf = transport.shelf
    const { items = [] } = (await shelf?.list('q', { limit: 10 })) ?? {}
    const found = items.map(({ envelope: { id }, reason }) => [id, reason.split(':', 1)[0]])
    assert.deepEqual(found.toSorted(), [
      ['b', 'body lost'],
      ['c', 'body lost'],
      ['d', 'body lost'],
      ['f', 'when it was due was deleted by somebody'],
    ])
    assert.match(
      errors.join(),
      /queue "q": 4 messages were gone from the stream .* before a worker/,
    )
    // What is in hand is still its worker's, and there is room for four again.
    for (const delivery of [held, left]) {
      assert.ok(delivery)
      assert.deepEqual(await subscription.settle([{ as: 'acked', delivery }]), [{ ok: true }])
    }
    assert.equal(await bench.raw.sendCommand(['HLEN', bench.key('ids')]), 0)
  } finally {
    await transport.close()
  }
}

async function deletedKeys(url: string): Promise<void> {
  const bench = await open(url)
  const subscription = await subscribeTo(bench.transport, 300)
  const names = ['ready', 'suspects', 'claims', 'ids', 'scheduled', 'parked', 'shelf', 'audit']
  for (const name of names) {
    const before = [envelope(`a-${name}`), envelope(`b-${name}`, { delayMs: 30 })]
    await bench.transport.send('q', before, { signal })
    const [held] = await subscription.receive({ max: 1, waitMs: 1_000, signal })
    await bench.raw.sendCommand(['DEL', bench.key(name)])
    if (held)
      await subscription.settle([{ as: 'released', delivery: held, delayMs: 0, counted: true }])
    const after = `c-${name}`
    await bench.transport.send('q', [envelope(after)], { signal })
    await until(after, async () => {
      const got = await subscription.receive({ max: 10, waitMs: 50, signal })
      await subscription.settle(got.map((delivery) => ({ as: 'acked', delivery })))
      return got.some(({ envelope: { id } }) => id === after)
    })
  }
}

async function otherGroup(url: string): Promise<void> {
  const bench = await open(url)
  const spec = (name: string) => ({ name, owner: 'team', maxDepth: undefined })
  await bench.transport.topology.ensure([spec('r')], signal)
  const other = await bench.another({ group: 'second' })
  await assert.rejects(other.topology.ensure([spec('q'), spec('r')], signal), (error: Error) => {
    const read = (name: string): RegExp =>
      new RegExp(`queue "${name}": stream \\S+ is read by the consumer group "millrace"`)
    assert.match(error.message, read('q'))
    return read('r').test(error.message)
  })
  await bench.transport.topology.ensure([spec('q'), spec('r')], signal)
  await other.topology.ensure([spec('s')], signal)
}

async function told(url: string): Promise<void> {
  const { facts = [] } = (await open(url)).transport
  for (const part of [
    /^persistence: append/,
    /^eviction: maxmemory-policy is noeviction/,
    /^failover: 0 rep/,
  ]) {
    assert.ok(
      facts.some((fact) => part.test(fact)),
      facts.join('\n'),
    )
  }
}

async function newerLayout(url: string): Promise<void> {
  const bench = await open(url)
  await bench.raw.sendCommand(['HSET', bench.key('meta'), 'layout', '4'])
  const spec = { name: 'q', owner: 'team', maxDepth: undefined }
  await assert.rejects(bench.transport.topology.ensure([spec], signal), /newer version/)
  // Nor does one that runs already go on with it.
  const [sent] = await bench.transport.send('q', [envelope('a')], { signal })
  assert.equal(sent && !sent.ok && sent.fault.code, 'notFound')
}
