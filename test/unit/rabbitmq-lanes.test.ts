import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { AmqpMessage } from '../../src/transports/rabbitmq/amqp-shapes.ts'
import { type LaneEntry, laneLine } from '../../src/transports/rabbitmq/lane-line.ts'
import { laneFor, lanePlaceOf } from '../../src/transports/rabbitmq/lane-place.ts'
import { type LaneSight, toGiveUp } from '../../src/transports/rabbitmq/lane-share.ts'
import { resolve } from '../../src/transports/rabbitmq/options.ts'

const options = resolve({
  url: 'amqp://localhost',
  prefix: 'shop.',
  queues: { mails: { queue: 'post', lanes: 3 } },
})

test('The lane of a key is its CRC-32 modulo the number of lanes, as in any other language.', () => {
  const place = lanePlaceOf(options, 'orders')
  assert.equal(place.lanes.length, 16)
  // zlib.crc32(b'…') of Python: 0xcbf43926, 0x0, 0xd3d99e8b
  const lanes = ['123456789', '', 'A'].map((orderingKey) =>
    laneFor(place, { orderingKey, id: 'i' }),
  )
  assert.deepEqual(
    lanes.map(({ queue }) => queue),
    ['shop.orders.lane.6', 'shop.orders.lane.0', 'shop.orders.lane.11'],
  )
  assert.equal(lanePlaceOf(options, 'mails').roster, 'post.lanes')
  assert.deepEqual(laneFor(lanePlaceOf(options, 'mails'), { orderingKey: '123456789', id: 'i' }), {
    queue: `post.lane.${0xcbf43926 % 3}`,
    exchange: '',
    routingKey: `post.lane.${0xcbf43926 % 3}`,
  })
})

function entry(id: string, orderingKey?: string): LaneEntry {
  const message: AmqpMessage = {
    content: Buffer.alloc(0),
    fields: { deliveryTag: 1, redelivered: false, exchange: '', routingKey: '' },
    properties: {},
  }
  const envelope = { id, body: message.content, headers: {}, priority: 0 }
  const read = {
    envelope: orderingKey === undefined ? envelope : { ...envelope, orderingKey },
    sentAt: 0,
    deliveries: 1,
  }
  return { message, read, cameAt: 0, state: 'waiting', handed: 0 }
}

function names(entries: readonly LaneEntry[]): readonly string[] {
  return entries.map(({ read }) => read.envelope.id)
}

test('Of each key the first one runs, whatever became of it; what has no key waits for nobody.', () => {
  const line = laneLine()
  const [a1, a2, b1, free, b2] = [
    entry('a1', 'a'),
    entry('a2', 'a'),
    entry('b1', 'b'),
    entry('free'),
    entry('b2', 'b'),
  ]
  for (const one of [a1, a2, b1, free, b2]) line.add(one)
  assert.deepEqual(names(line.take(2)), ['a1', 'b1'])
  assert.deepEqual(names(line.take(9)), ['free'])
  assert.equal(line.isBusy(), true)
  // Failed, and waiting for its moment: its key waits, the other one goes on.
  a1.state = 'held'
  line.remove(b1)
  line.remove(free)
  assert.deepEqual(names(line.take(9)), ['b2'])
  line.remove(b2)
  assert.deepEqual([line.isBusy(), line.isHolding()], [false, true])
  a1.state = 'waiting'
  assert.deepEqual(names(line.take(9)), ['a1'])
  assert.equal(a1.handed, 2)
  // Its ack is on its way.
  a1.state = 'ending'
  assert.deepEqual(names(line.take(9)), [])
  line.remove(a1)
  assert.deepEqual(names(line.take(9)), ['a2'])
})

interface Sight extends LaneSight {
  readonly name: string
}

function sight(
  name: string,
  how: { active?: true; busy?: true; holding?: true; window?: number },
): Sight {
  return {
    name,
    isOn: () => true,
    isActive: () => how.active ?? false,
    isBusy: () => how.busy ?? false,
    isHolding: () => how.holding ?? false,
    window: () => how.window ?? 4,
  }
}

test('What is above an even share is given up, idle lanes first, and none in which a failed message waits.', () => {
  const lanes = [
    sight('busy', { active: true, busy: true }),
    sight('idle', { active: true }),
    sight('holding', { active: true, holding: true }),
    sight('elsewhere', {}),
  ]
  const given = (askers: number | undefined): readonly string[] =>
    [...toGiveUp(lanes, { askers, lanes: 4, window: 4 })].map(({ name }) => name)
  assert.deepEqual(given(undefined), [])
  assert.deepEqual(given(1), [])
  assert.deepEqual(given(2), ['idle'])
  assert.deepEqual(given(4), ['idle', 'busy'])
})

test('A lane that was begun with too small a window is begun anew, and with one that is far too large.', () => {
  const windows = [3, 4, 15, 16].map((window) => sight(`${window}`, { window }))
  const lanes = [...windows, sight('held', { window: 1, holding: true })]
  const given = toGiveUp(lanes, { askers: 1, lanes: 5, window: 4 })
  assert.deepEqual(
    [...given].map(({ name }) => name),
    ['3', '16'],
  )
})
