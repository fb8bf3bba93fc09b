import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type { RabbitmqSettings } from 'millrace/rabbitmq'
import { backendUrl } from '../backends.ts'
import { ensure, freshName, never, openRabbit, withChannel } from './rabbitmq-subjects.ts'

const url = backendUrl('rabbitmq')
const managementUrl = process.env.MILLRACE_TEST_RABBITMQ_MANAGEMENT_URL

/** What a start with `check` says; the same that a look says, which makes nothing either. */
async function refusal(
  address: string,
  queue: string,
  settings: RabbitmqSettings,
): Promise<string> {
  const transport = await openRabbit({ url: address, topology: 'check', ...settings })
  try {
    const specs = [{ name: queue, owner: 'team-test', maxDepth: undefined }]
    const looked = await transport.topology.differences?.(specs, never)
    const said = await ensure(transport, queue).then(() => '', String)
    for (const one of looked ?? []) assert.ok(said.includes(one), `${one}\nis not in: ${said}`)
    assert.equal(looked?.length === 0, said === '')
    return said
  } finally {
    await transport.close()
  }
}

async function madeQueue(
  t: TestContext,
  address: string,
  settings: RabbitmqSettings = {},
  name: string = freshName('bound'),
): Promise<string> {
  const transport = await openRabbit({ url: address, ...settings })
  await ensure(transport, name)
  await transport.close()
  t.after(() => withChannel(address, (channel) => channel.deleteQueue(name)))
  return name
}

if (url !== undefined && managementUrl !== undefined) {
  const management = { url: managementUrl }

  test('With topology: check and the management API each binding is compared that delays need.', async (t) => {
    const delayPrefix = freshName('hops')
    const at = (level: number): string => `${delayPrefix}.${String(level).padStart(2, '0')}`
    const landing = `${delayPrefix}.landing`
    const stranded = `${delayPrefix}.stranded`
    const queue = await madeQueue(t, url, { delayPrefix })
    t.after(() =>
      withChannel(url, async (channel) => {
        const levels = Array.from({ length: 26 }, (_, level) => at(level))
        for (const name of [...levels, stranded]) await channel.deleteQueue(name)
        for (const name of [...levels, stranded, landing]) await channel.deleteExchange(name)
      }),
    )
    const settings = { delayPrefix, management }
    assert.equal(await refusal(url, queue, settings), '')
    const end = `${'*.'.repeat(26)}${queue}`
    await withChannel(url, (channel) => channel.unbindQueue(queue, landing, end))
    const ends = `binding of queue "${queue}" to exchange "${landing}" by "${end}", by which delayed messages come to it, does not exist`
    assert.ok((await refusal(url, queue, settings)).includes(ends))
    const [waits, passes] = [`${'*.'.repeat(25)}1.#`, `${'*.'.repeat(22)}0.#`]
    await withChannel(url, async (channel) => {
      await channel.unbindQueue(at(0), at(0), waits)
      await channel.unbindExchange(at(2), at(3), passes)
      await channel.unbindQueue(stranded, stranded, '')
    })
    const said = await refusal(url, queue, settings)
    for (const [kind, to, from, key] of [
      ['queue', at(0), at(0), waits],
      ['exchange', at(2), at(3), passes],
      ['queue', stranded, stranded, ''],
    ]) {
      const part = `binding of ${kind} "${to}" to exchange "${from}" by "${key}", which delays need, does not exist`
      assert.ok(said.includes(part), `missing: ${part}\nin: ${said}`)
    }
    assert.ok(!said.includes(at(7)))
    // What can be made is made, so that it is no reason to refuse a start.
    const maker = await openRabbit({ url, ...settings })
    t.after(() => maker.close())
    const specs = [{ name: queue, owner: 'team-test', maxDepth: undefined }]
    assert.deepEqual(await maker.topology.differences?.(specs, never), [])
    await ensure(maker, queue)
    assert.equal(await refusal(url, queue, settings), '')
  })

  test('With topology: check and the management API an exchange that feeds other queues than its own is refused.', async (t) => {
    const other = await madeQueue(t, url, { delays: false })
    for (const [type, good, bad] of [
      ['fanout', 'whatever', undefined],
      ['direct', 'order.paid', 'order.*'],
      ['topic', 'order.#', 'order.*.late'],
      ['topic', '*.paid.#', 'paid.#'],
      ['topic', '#', 'order'],
    ] as const) {
      const exchange = freshName(type)
      const queue = await madeQueue(t, url, { delays: false })
      await withChannel(url, async (channel) => {
        await channel.assertExchange(exchange, type)
        await channel.bindQueue(other, exchange, '#')
        if (bad !== undefined) await channel.bindQueue(queue, exchange, bad)
      })
      t.after(() => withChannel(url, (channel) => channel.deleteExchange(exchange)))
      const names = { queue, exchange, routingKey: 'order.paid' }
      const settings = { delays: false, queues: { [queue]: names }, management }
      const part = `exchange "${exchange}" sends nothing with routing key "order.paid" to queue "${queue}"`
      assert.ok((await refusal(url, queue, settings)).includes(part), `${type} ${bad}`)
      await withChannel(url, (channel) => channel.bindQueue(queue, exchange, good))
      assert.equal(await refusal(url, queue, settings), '', `${type} ${good}`)
    }
  })

  test('What is not seen without the management API is a fact, and none with it.', async () => {
    const queues = { orders: { exchange: 'amq.topic' } }
    for (const [given, parts] of [
      [{}, ['delays: ', 'exchanges: ']],
      [{ management }, []],
    ] as const) {
      const transport = await openRabbit({ url, topology: 'check', queues, ...given })
      const unseen = transport.facts?.filter((fact) => fact.includes('is not seen without')) ?? []
      assert.equal(unseen.length, parts.length)
      for (const [i, part] of parts.entries()) assert.ok(unseen[i]?.startsWith(part))
      await transport.close()
    }
  })
}
