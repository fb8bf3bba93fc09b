import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { createClient, createCluster } from '@redis/client'
import { type RedisOptions, redis } from 'millrace/redis'
import type { Delivery } from '../../src/model/delivery.ts'
import { messageOfError } from '../../src/model/describe-error.ts'
import type { Subscription, Transport } from '../../src/transport/transport.ts'
import { connectTo, envelope, signal, subscribeTo } from './redis-bench.ts'
import {
  freshPrefix,
  NO_REDIS,
  type RedisServer,
  redisCluster,
  redisServers,
  smallestUser,
} from './redis-servers.ts'
import { until } from './until.ts'

const servers = redisServers()
if (servers.length === 0) test('redis, topology', { skip: NO_REDIS }, () => {})

const spec = { name: 'q', owner: 'team', maxDepth: undefined }
const opened: Transport[] = []
const ends: (() => unknown)[] = []
after(async () => {
  await Promise.all(opened.map((transport) => transport.close()))
  for (const end of ends) await end()
})

/** A transport whose queue `q` is this stream. */
async function onStream(
  url: string,
  names: { readonly stream?: string; readonly group?: string },
  more: Partial<RedisOptions> = {},
): Promise<Transport> {
  const options = { url, prefix: freshPrefix(), queues: { q: names }, ...more } as RedisOptions
  const transport = await connectTo(options)
  opened.push(transport)
  return transport
}

type Ask = (...args: readonly string[]) => Promise<unknown>

async function asking(url: string): Promise<Ask> {
  const client = createClient({ url })
  client.on('error', () => {})
  await client.connect()
  ends.push(() => client.destroy())
  return (...args) => client.sendCommand([...args])
}

async function refusal(transport: Transport): Promise<string> {
  const error = await transport.topology.ensure([spec], signal).catch((e: unknown) => e)
  return error === undefined ? '' : messageOfError(error)
}

/** The command that a refusal ends with, as somebody would type it. */
function commandIn(said: string, verb: string): readonly string[] {
  const [command = ''] = new RegExp(`${verb} [^,;]*`).exec(said) ?? []
  return command.trim().split(' ')
}

async function take(subscription: Subscription, count: number): Promise<readonly Delivery[]> {
  const found: Delivery[] = []
  await until(`${count} messages`, async () => {
    found.push(...(await subscription.receive({ max: count - found.length, waitMs: 100, signal })))
    return found.length >= count
  })
  return found
}

const texts = (all: readonly Delivery[]): readonly string[] =>
  all.map((delivery) => Buffer.from(delivery.envelope.body).toString())

for (const server of servers) {
  const { name, url } = server
  describe(`${name}, topology`, () => {
    test('With check nothing is made, and all that is missing is listed with how to make it.', () =>
      checkLists(url))
    test('A look writes nothing, and names what is wrong with what is there.', () => looks(url))
    test('A key of another type is named, with both types.', () => otherType(url))
    test('A stream that was there is worked from its beginning, by a group that is made for it.', () =>
      existingStream(url))
    test('What a consumer of another program holds is refused, until it is handed over as the refusal says.', () =>
      foreignHolder(url))
    test('Entries that another program acked and left are refused, until they are deleted as the refusal says.', () =>
      ackedAndLeft(url))
    test('A group that is not ours to make is not made when somebody deletes it, and work goes on when it is back.', () =>
      groupGone(url))
    test('With none nothing is looked at.', () => none(url))
    test('A stream of ours under another prefix is that queue, dead letters and all.', () =>
      sameQueue(url))
    test('A user with rights on the stream and what is kept beside it can do all that is needed.', () =>
      smallUser(server))
  })
}

async function looks(url: string): Promise<void> {
  const ask = await asking(url)
  const prefix = freshPrefix()
  const stream = `${prefix}shop`
  const look = async (topology: 'create' | 'check' | 'none'): Promise<readonly string[]> => {
    const transport = await onStream(url, { stream, group: 'ours' }, { topology, prefix })
    return (await transport.topology.differences?.([spec], signal)) ?? []
  }
  const keys = async (): Promise<unknown> => ask('KEYS', `*${prefix}*`)
  assert.deepEqual(await look('create'), [])
  const [missing = '', ...more] = await look('check')
  assert.match(missing, /there is no stream/)
  assert.deepEqual([more, await look('none'), await keys()], [[], [], []])
  await ask('XGROUP', 'CREATE', stream, 'theirs', '0', 'MKSTREAM')
  const before = await keys()
  for (const topology of ['create', 'check'] as const) {
    assert.match((await look(topology)).join(), /is read by the consumer group "theirs"/)
  }
  assert.deepEqual([await look('none'), await keys()], [[], before])
}

test('On a cluster all keys of a stream live where it does, with a hash tag and without.', async (t) => {
  const nodes = redisCluster()
  if (nodes === undefined) return t.skip(NO_REDIS)
  const own = freshPrefix()
  for (const stream of [`${own} orders`, `{${own}}:orders`, `x{${own}}`]) {
    await livesInOneSlot(nodes, stream)
  }
})

test('What is wrong with names is said at once.', () => {
  const queues = {
    a: { stream: 'a}b' },
    b: { stream: '', grup: 'x' },
    c: 'c',
    d: { stream: '{}d' },
  }
  const options = { url: 'redis://a', topology: 'make', queues } as unknown as RedisOptions
  assert.throws(
    () => redis(options),
    (error) => {
      const said = messageOfError(error)
      for (const part of [
        'queues["a"].stream: "a}b" has braces and no hash tag between them',
        'queues["b"].stream: expected a text of 1 to 512 bytes',
        'unknown option "queues["b"].grup", did you mean "queues["b"].group"?',
        'queues["c"]: expected { stream, group }',
        'queues["d"].stream: "{}d" has braces',
        'topology: expected "create", "check" or "none", got "make"',
      ]) {
        assert.ok(said.includes(part), `missing: ${part}\nin: ${said}`)
      }
      return true
    },
  )
})

test('Two queues on one stream are refused, by their names.', async (t) => {
  const [server] = servers
  if (server === undefined) return t.skip(NO_REDIS)
  const stream = `${freshPrefix()} orders`
  const transport = await onStream(
    server.url,
    { stream },
    { queues: { q: { stream }, r: { stream } } },
  )
  const both = transport.topology.ensure([spec, { ...spec, name: 'r' }], signal)
  await assert.rejects(both, /queues "q" and "r" have one stream, t-/)
})

async function checkLists(url: string): Promise<void> {
  const ask = await asking(url)
  const own = freshPrefix()
  const queues = {
    q: { stream: `${own}-none` },
    r: { stream: `${own}-groupless` },
    s: { stream: `${own}-other`, group: 'mine' },
  }
  await ask('XADD', queues.r.stream, '*', 'n', '1')
  await ask('XGROUP', 'CREATE', queues.s.stream, 'theirs', '0', 'MKSTREAM')
  const transport = await onStream(url, {}, { queues, topology: 'check' })
  const specs = ['q', 'r', 's'].map((queue) => ({ ...spec, name: queue }))
  const error = await transport.topology.ensure(specs, signal).catch((e: unknown) => e)
  const said = messageOfError(error)
  for (const part of [
    `queue "q": there is no stream ${own}-none, and topology is "check"; make it: XGROUP CREATE ${own}-none millrace 0 MKSTREAM`,
    `queue "r": stream ${own}-groupless has no consumer group "millrace"`,
    `queue "s": stream ${own}-other is read by the consumer group "theirs", and with "mine" as a second one`,
    `queue "s": stream ${own}-other has no consumer group "mine"`,
  ]) {
    assert.ok(said.includes(part), `missing: ${part}\nin: ${said}`)
  }
  assert.deepEqual(
    await ask('KEYS', `*${own}*`).then((all) => [...(all as string[])].sort()),
    [queues.r.stream, queues.s.stream].sort(),
  )
  assert.deepEqual(await ask('XINFO', 'GROUPS', queues.r.stream), [])
  const [, groupless = ''] = said.split('queue "r":')
  await ask(...commandIn(groupless, 'XGROUP CREATE'))
  await transport.topology.ensure([{ ...spec, name: 'r' }], signal)
}

async function otherType(url: string): Promise<void> {
  const ask = await asking(url)
  const stream = `${freshPrefix()}-hash`
  await ask('HSET', stream, 'a', '1')
  await ask('SET', `{${stream}}.millrace:shelf`, 'x')
  const said = await refusal(await onStream(url, { stream }))
  assert.ok(said.includes(`queue "q": key ${stream} is a hash, and has to be a stream`), said)
  assert.ok(said.includes(`shelf is a string, and has to be a hash`), said)
}

async function existingStream(url: string): Promise<void> {
  const ask = await asking(url)
  const stream = `${freshPrefix()} orders`
  await ask('XADD', stream, '*', 'body', 'before')
  const transport = await onStream(url, { stream, group: 'work ers' })
  assert.equal(await refusal(transport), '')
  await ask('XADD', stream, '*', 'body', 'after')
  await transport.send('q', [envelope('ours', { body: Buffer.from('ours') })], { signal })
  const subscription = await subscribeTo(transport)
  const all = await take(subscription, 3)
  assert.deepEqual(texts(all), ['before', 'after', 'ours'])
  await subscription.settle(all.map((delivery) => ({ as: 'acked', delivery })))
  assert.equal(await ask('XLEN', stream), 0)
  assert.equal(await refusal(transport), '')
}

async function foreignHolder(url: string): Promise<void> {
  const ask = await asking(url)
  const stream = `${freshPrefix()} orders`
  const group = 'workers'
  await ask('XGROUP', 'CREATE', stream, group, '0', 'MKSTREAM')
  await ask('XADD', stream, '*', 'body', 'held')
  await ask('XADD', stream, '*', 'body', 'waiting')
  await ask('XREADGROUP', 'GROUP', group, 'theirs-1', 'COUNT', '1', 'STREAMS', stream, '>')
  const transport = await onStream(url, { stream, group }, { topology: 'check' })
  const said = await refusal(transport)
  assert.match(
    said,
    /consumer "theirs-1" of group "workers" is another program's and holds 1 entries/,
  )
  await ask(...handOver(said))
  assert.equal(await refusal(transport), '')
  const subscription = await subscribeTo(transport)
  const [first] = await take(subscription, 1)
  assert.ok(first)
  assert.deepEqual([texts([first]), first.alone, first.history.crashes], [['held'], true, 1])
  await subscription.settle([{ as: 'acked', delivery: first }])
  assert.deepEqual(texts(await take(subscription, 1)), ['waiting'])
}

/** The stream's name has a space, so it is put together again. */
function handOver(said: string): readonly string[] {
  const [, key = '', consumer = ''] = /ZADD (.*claims) 0 (\S+)/.exec(said) ?? []
  return ['ZADD', key, '0', consumer]
}

async function ackedAndLeft(url: string): Promise<void> {
  const ask = await asking(url)
  const stream = `${freshPrefix()}-orders`
  await ask('XGROUP', 'CREATE', stream, 'millrace', '0', 'MKSTREAM')
  const ids: string[] = []
  for (const body of ['done', 'done', 'waiting']) {
    ids.push(String(await ask('XADD', stream, '*', 'body', body)))
  }
  const [first = '', second = ''] = ids
  await ask('XREADGROUP', 'GROUP', 'millrace', 'theirs', 'COUNT', '2', 'STREAMS', stream, '>')
  await ask('XACK', stream, 'millrace', first, second)
  const transport = await onStream(url, { stream })
  const said = await refusal(transport)
  assert.match(said, /has entries that group "millrace" has read and acked and that nobody deleted/)
  await ask(...commandIn(said, 'XTRIM'))
  assert.equal(await refusal(transport), '')
  assert.equal((await transport.browse?.gauge('q'))?.depth, 1)
  assert.deepEqual(texts(await take(await subscribeTo(transport), 1)), ['waiting'])
}

async function groupGone(url: string): Promise<void> {
  for (const topology of ['check', 'none'] as const) {
    const ask = await asking(url)
    const stream = `${freshPrefix()}-orders`
    await ask('XGROUP', 'CREATE', stream, 'millrace', '0', 'MKSTREAM')
    const transport = await onStream(url, { stream }, { topology })
    assert.equal(await refusal(transport), '')
    await transport.send('q', [envelope('kept')], { signal })
    await ask('XGROUP', 'DESTROY', stream, 'millrace')
    const subscription = await subscribeTo(transport)
    const error = await subscription.receive({ max: 1, waitMs: 0, signal }).catch((e: unknown) => e)
    assert.match(messageOfError(error), /has no consumer group "millrace", and topology is not/)
    assert.equal(transport.diagnose(error).code, 'notFound')
    assert.deepEqual(await ask('XINFO', 'GROUPS', stream), [])
    await ask(...commandIn(messageOfError(error), 'XGROUP CREATE'))
    assert.equal((await take(subscription, 1))[0]?.envelope.id, 'kept')
  }
}

async function none(url: string): Promise<void> {
  const ask = await asking(url)
  const stream = `${freshPrefix()}-orders`
  await ask('XGROUP', 'CREATE', stream, 'other', '0', 'MKSTREAM')
  await ask('XGROUP', 'CREATE', stream, 'millrace', '0')
  const transport = await onStream(url, { stream }, { topology: 'none' })
  assert.equal(await refusal(transport), '')
  await transport.send('q', [envelope('sent')], { signal })
  assert.equal((await take(await subscribeTo(transport), 1))[0]?.envelope.id, 'sent')
  const absent = `${freshPrefix()}-absent`
  assert.equal(await refusal(await onStream(url, { stream: absent }, { topology: 'none' })), '')
  assert.equal(await ask('EXISTS', absent), 0)
}

async function sameQueue(url: string): Promise<void> {
  const prefix = freshPrefix()
  const one = await onStream(url, {}, { prefix })
  const two = await onStream(url, { stream: `{${prefix}:q}:ready` })
  for (const transport of [one, two]) assert.equal(await refusal(transport), '')
  await one.send('q', [envelope('m')], { signal })
  const subscription = await subscribeTo(two)
  const [delivery] = await take(subscription, 1)
  assert.ok(delivery)
  await subscription.settle([{ as: 'dead', delivery, reason: 'no', errorClass: 'permanent' }])
  assert.equal((await one.shelf?.get('q', 'm'))?.reason, 'no')
}

async function smallUser(server: RedisServer): Promise<void> {
  const stream = `${freshPrefix()}-orders`
  const { address, dispose } = await smallestUser(server, [
    `~${stream}`,
    `~{${stream}}.millrace:*`,
    `&{${stream}}.millrace:*`,
  ])
  ends.push(dispose)
  await wholeLife(await onStream(address.url, { stream }))
}

/** Everything that a message can go through. */
async function wholeLife(transport: Transport): Promise<void> {
  assert.equal(await refusal(transport), '')
  const remember = [{ kind: 'idempotency', key: 'k', fingerprint: '', windowMs: 60_000 }] as const
  const sent = await transport.send(
    'q',
    [envelope('a', { remember }), envelope('b', { delayMs: 5 })],
    {
      signal,
    },
  )
  assert.ok(sent.every(({ ok }) => ok))
  const first = await subscribeTo(transport, 300)
  const [a, b] = (await take(first, 2)).toSorted((x, y) => (x.envelope.id < y.envelope.id ? -1 : 1))
  assert.ok(a && b)
  const release = { as: 'released', counted: true } as const
  await first.settle([{ ...release, delivery: a, delayMs: 5 }])
  // The lease of the other one ends.
  const subscription = await subscribeTo(transport)
  const back = await take(subscription, 2)
  assert.deepEqual(back.map(({ envelope: { id } }) => id).toSorted(), ['a', 'b'])
  const deaths = back.map(
    (delivery) => ({ as: 'dead', delivery, reason: 'no', errorClass: 'permanent' }) as const,
  )
  await subscription.settle(deaths)
  const audit = { actor: 'a', reason: 'r' }
  assert.deepEqual(await transport.shelf?.redrive('q', ['a'], audit), ['a'])
  assert.deepEqual(await transport.shelf?.discard('q', ['b'], audit), ['b'])
  const again = await take(subscription, 1)
  await subscription.settle(again.map((delivery) => ({ as: 'acked', delivery })))
  assert.equal((await transport.browse?.gauge('q'))?.depth, 0)
}

async function livesInOneSlot(nodes: readonly string[], stream: string): Promise<void> {
  const options = { cluster: nodes, prefix: freshPrefix(), queues: { q: { stream } } }
  const transport = await connectTo(options)
  opened.push(transport)
  await wholeLife(transport)
  const cluster = createCluster({ rootNodes: nodes.map((url) => ({ url })) })
  cluster.on('error', () => {})
  await cluster.connect()
  ends.push(() => cluster.destroy())
  const slots = new Set<number>()
  const mark = /t-\d+-\d+/.exec(stream)?.[0] ?? 'none'
  for (const master of cluster.masters) {
    const node = await cluster.nodeClient(master)
    const keys = (await node.sendCommand(['KEYS', `*${mark}*`])) as readonly string[]
    for (const key of keys.filter((one) => one.includes(stream))) {
      slots.add(Number(await node.sendCommand(['CLUSTER', 'KEYSLOT', key])))
    }
  }
  assert.equal(slots.size, 1, `keys of ${stream} lie in ${slots.size} slots`)
}
