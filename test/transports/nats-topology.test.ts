import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { jetstreamManager } from '@nats-io/jetstream'
import { connect as dial } from '@nats-io/transport-node'
import { createMillrace, defineQueue } from 'millrace'
import { type NatsOptions, type NatsSettings, nats } from 'millrace/nats'
import { z } from 'zod'
import { OptionsError } from '../../src/model/errors.ts'
import { backendUrl } from '../backends.ts'
import { ensureQ, envelope, type NatsBench, one, openNats, signal } from './nats-bench.ts'
import { connecting, freshPrefix, removeStreams } from './nats-harness.ts'

const address = backendUrl('nats')
const servers = address ?? ''

function within(title: string, body: (t: TestContext) => Promise<void>): void {
  if (address !== undefined) test(`nats: ${title}`, body)
}

/** What start-up says about streams that are there already. */
async function refusals(bench: NatsBench, settings: NatsSettings = {}): Promise<string> {
  const other = await bench.another(settings)
  const error = await ensureQ(other).then(
    () => undefined,
    (cause: unknown) => cause,
  )
  assert.ok(error === undefined || error instanceof OptionsError, String(error))
  return error?.message ?? ''
}

within(
  'what would lose messages is refused at start, all of it by name, and nothing is changed',
  async (t) => {
    const bench = await openNats(servers)
    t.after(() => bench.dispose())
    const stream = `${bench.prefix}-queue-q`
    const shelf = `${bench.prefix}-shelf-q`
    const { streams, consumers } = bench.manager
    await streams.update(stream, { discard: 'old', max_msgs: 1_000, max_age: 600_000 * 1_000_000 })
    await streams.update(shelf, { max_age: 3_600_000 * 1_000_000 })
    await consumers.delete(stream, bench.prefix)
    await consumers.add(stream, {
      durable_name: bench.prefix,
      ack_policy: 'explicit',
      filter_subject: `${bench.prefix}.queue.q`,
      max_deliver: 5,
      backoff: [1_000_000_000],
    })
    const before = JSON.stringify([
      (await streams.info(stream)).config,
      (await consumers.info(stream, bench.prefix)).config,
    ])
    for (const topology of ['create', 'check'] as const) {
      const text = await refusals(bench, { topology })
      for (const part of [
        /discard is old with max_msgs 1000/,
        /max_age is 600000 ms/,
        /max_age is 3600000 ms; dead letters/,
        /max_deliver is 5/,
        /backoff is set/,
      ]) {
        assert.match(text, part)
      }
    }
    assert.equal(await refusals(bench, { topology: 'none' }), '')
    assert.match(await refusals(bench, { horizonMs: 600_000 }), /discard is old/)
    assert.doesNotMatch(await refusals(bench, { horizonMs: 600_000 }), /max_age is 600000 ms/)
    const after = JSON.stringify([
      (await streams.info(stream)).config,
      (await consumers.info(stream, bench.prefix)).config,
    ])
    assert.equal(after, before)
  },
)

within(
  'a consumer that lets fewer messages be out than maxUnacked asks for is refused, and is fine without',
  async (t) => {
    const bench = await openNats(servers)
    t.after(() => bench.dispose())
    const { consumers } = bench.manager
    const stream = `${bench.prefix}-queue-q`
    await consumers.update(stream, bench.prefix, { max_ack_pending: 1_000 })
    for (const maxUnacked of [undefined, 1_000, 500]) {
      assert.equal(await refusals(bench, maxUnacked === undefined ? {} : { maxUnacked }), '')
    }
    const said = await refusals(bench, { maxUnacked: 1_001 })
    assert.match(said, /max_ack_pending is 1000; raise it, or pass maxUnacked: 1000$/)
    await consumers.update(stream, bench.prefix, { max_ack_pending: -1 })
    assert.equal(await refusals(bench, { maxUnacked: 1_001 }), '')
    assert.equal((await consumers.info(stream, bench.prefix)).config.max_ack_pending, -1)
  },
)

within(
  'streams that differ, a store that is missing and wrong options are one refusal, and nothing is made',
  async (t) => {
    const bench = await openNats(servers, { schedules: false })
    t.after(() => bench.dispose())
    const { prefix, manager } = bench
    await manager.streams.update(`${prefix}-queue-q`, { max_age: 600_000 * 1_000_000 })
    const [q, other] = ['q', 'other'].map((name) =>
      defineQueue({ name, owner: 'team', payload: z.string() }),
    )
    assert.ok(q && other)
    const error = await createMillrace({
      transport: nats({ servers, prefix, ackWaitMs: 1_000, schedules: false }),
      queues: [q, other],
      redriveWindowMs: -1,
    }).then(
      () => undefined,
      (cause: unknown) => cause,
    )
    assert.ok(error instanceof OptionsError, String(error))
    const wanted = [
      /^redriveWindowMs: /,
      /^store: nats cannot keep /,
      /^transport nats: .*max_age is 600000 ms/,
    ]
    assert.equal(error.problems.length, wanted.length, error.message)
    for (const [i, part] of wanted.entries()) assert.match(error.problems[i] ?? '', part)
    await assert.rejects(manager.streams.info(`${prefix}-queue-other`), {
      name: 'StreamNotFoundError',
    })
  },
)

within('streams that keep what was acked are refused', async () => {
  const prefix = freshPrefix()
  const connection = await dial({ servers })
  const manager = await jetstreamManager(connection)
  for (const retention of ['limits', 'interest'] as const) {
    await manager.streams.add({
      name: `${prefix}-queue-q`,
      subjects: [`${prefix}.queue.q`],
      retention,
    })
    const transport = await connecting(nats({ connection, prefix }))
    await assert.rejects(
      ensureQ(transport),
      new RegExp(`retention is ${retention}; expected workqueue`),
    )
    await transport.close()
    await removeStreams(servers, prefix)
  }
  await connection.close()
})

within(
  'a stream in memory, with too few copies or a life below all retries is refused',
  async () => {
    const prefix = freshPrefix()
    const connection = await dial({ servers })
    const manager = await jetstreamManager(connection)
    const day = 86_400_000
    await manager.streams.add({
      name: `${prefix}-queue-q`,
      subjects: [`${prefix}.queue.q`],
      retention: 'workqueue',
      storage: 'memory',
      max_age: 15 * day * 1_000_000,
    })
    const settings = { topology: 'check', replicas: 2, schedules: false } as const
    const transport = await connecting(nats({ connection, prefix, ...settings }))
    const spec = { name: 'q', owner: 'team', maxDepth: undefined }
    const refused = transport.topology.ensure([{ ...spec, horizonMs: 20 * day }], signal)
    await assert.rejects(refused, (error: Error) => {
      assert.match(error.message, /storage is memory/)
      assert.match(error.message, /num_replicas is 1; raise it, or pass replicas: 1/)
      return error.message.includes(`to at least ${20 * day} ms`)
    })
    await transport.close()
    await removeStreams(servers, prefix)
    await connection.close()
  },
)

within('topology check makes nothing and says what is missing', async () => {
  const prefix = freshPrefix()
  const transport = await connecting(nats({ servers, prefix, topology: 'check' }))
  await assert.rejects(ensureQ(transport), (error: unknown) => {
    assert.ok(error instanceof OptionsError)
    assert.match(error.message, new RegExp(`needs stream ${prefix}-queue-q, which is not there`))
    assert.match(error.message, new RegExp(`needs stream ${prefix}-shelf-q, which is not there`))
    return true
  })
  await transport.close()
  const connection = await dial({ servers })
  for await (const name of (await jetstreamManager(connection)).streams.names()) {
    assert.ok(!name.startsWith(prefix))
  }
  await connection.close()
})

within('a queue may live under names of its own', async () => {
  const prefix = freshPrefix()
  const names = {
    stream: `${prefix}-orders`,
    subject: `${prefix}.shop.orders`,
    consumer: 'workers',
    shelf: `${prefix}-letters`,
  }
  const transport = await connecting(nats({ servers, prefix, queues: { q: names } }))
  await ensureQ(transport)
  const connection = await dial({ servers })
  const { consumers } = await jetstreamManager(connection)
  assert.equal((await consumers.info(names.stream, 'workers')).config.filter_subject, names.subject)
  await connection.request(names.subject, '{"from":"the shop"}')
  const subscription = await transport.subscribe('q', {
    group: 'g',
    leaseMs: 60_000,
    maxInFlight: 1,
  })
  assert.equal(
    new TextDecoder().decode((await one(subscription)).envelope.body),
    '{"from":"the shop"}',
  )
  await transport.close()
  await connection.close()
  await removeStreams(servers, prefix)
})

within('a connection of the user stays open when the transport closes', async () => {
  const prefix = freshPrefix()
  const connection = await dial({ servers })
  const transport = await connecting(nats({ connection, prefix }))
  await ensureQ(transport)
  await transport.send('q', [envelope('a')], { signal })
  await transport.close()
  assert.equal(connection.isClosed(), false)
  await connection.close()
  await removeStreams(servers, prefix)
})

test('nats: all that is wrong with the options is said at once, and no address is shown', () => {
  const wrong = {
    servers: 'http://user:geheim@host/x',
    prefix: 'a b',
    topology: 'make',
    replicas: 9,
    ackWait: 5,
    timeoutMs: 1,
    queues: { q: { strem: 'x', subject: 'a.*' } },
  }
  assert.throws(
    () => nats(wrong as unknown as NatsOptions),
    (error: unknown) => {
      assert.ok(error instanceof OptionsError)
      for (const part of [
        /servers: expected addresses/,
        /prefix: /,
        /topology: /,
        /replicas: /,
        /unknown option "ackWait", did you mean "ackWaitMs"/,
        /timeoutMs: /,
        /strem/,
        /subject: expected a subject without wildcards/,
      ]) {
        assert.match(error.message, part)
      }
      assert.doesNotMatch(error.message, /geheim/)
      return true
    },
  )
  assert.throws(
    () => nats({} as unknown as NatsOptions),
    /servers or connection: expected one of them/,
  )
})

within(
  'a subject belongs to one stream, so what is published again on it after a redrive reaches no other',
  async (t) => {
    const bench = await openNats(servers)
    t.after(() => bench.dispose())
    for (const retention of ['workqueue', 'limits'] as const) {
      const other = {
        name: `${bench.prefix}-other`,
        subjects: [`${bench.prefix}.queue.>`],
        retention,
      }
      await assert.rejects(bench.manager.streams.add(other), /overlap/)
    }
    const second = { durable_name: 'second', ack_policy: 'explicit' } as const
    await assert.rejects(
      bench.manager.consumers.add(`${bench.prefix}-queue-q`, second),
      /workqueue|unique/,
    )
  },
)
