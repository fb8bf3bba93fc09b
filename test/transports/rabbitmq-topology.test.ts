import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { type RabbitmqSettings, rabbitmq } from 'millrace/rabbitmq'
import { silentLogger } from '../../src/model/logger.ts'
import { tooSlow } from '../../src/transports/rabbitmq/consumer-timeout.ts'
import { resolve } from '../../src/transports/rabbitmq/options.ts'
import { serverOf } from '../../src/transports/rabbitmq/server.ts'
import { backendUrl } from '../backends.ts'
import { ensure, envelope, freshName, never, openRabbit, withChannel } from './rabbitmq-subjects.ts'
import { until } from './until.ts'

const url = backendUrl('rabbitmq')
const managementUrl = process.env.MILLRACE_TEST_RABBITMQ_MANAGEMENT_URL

const skip = url === undefined
const address = url ?? ''
const used: string[] = []
const declared = async (what: string, options: object): Promise<string> => {
  const queue = freshName(what)
  used.push(queue)
  await withChannel(address, (channel) => channel.assertQueue(queue, options))
  return queue
}
const refusal = async (
  queues: readonly string[],
  settings: RabbitmqSettings = {},
): Promise<string> => {
  const transport = await openRabbit({ url: address, delays: false, ...settings })
  try {
    await ensure(transport, ...queues)
    return ''
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  } finally {
    await transport.close()
  }
}
after(async () => {
  if (skip) return
  await withChannel(address, async (channel) => {
    for (const queue of used) await channel.deleteQueue(queue)
  })
})

const quorum = { 'x-queue-type': 'quorum' }

test('Everything about a queue that is there and would lose messages is refused at once, each with what to do.', {
  skip,
}, async () => {
  const lossy = await declared('lossy', {
    arguments: {
      ...quorum,
      'x-max-length': 5,
      'x-overflow': 'drop-head',
      'x-message-ttl': 60_000,
      'x-delivery-limit': 4,
    },
  })
  const limited = await declared('limited', {
    arguments: { ...quorum, 'x-delivery-limit': 4, 'x-dead-letter-exchange': 'amq.topic' },
  })
  const classic = await declared('classic', { durable: false, autoDelete: true })
  const said = await refusal([lossy, limited, classic])
  for (const part of [
    `"${lossy}" drops messages after 60000 ms (message-ttl)`,
    `"${lossy}" drops its oldest messages beyond its length 5 (overflow drop-head); set overflow: reject-publish`,
    `"${lossy}" drops a message at its return number 4 (delivery-limit, no dead-letter-exchange)`,
    `"${limited}" dead-letters at return number 4 (delivery-limit); raise it to 28`,
    `"${classic}" is of type classic, not quorum; pass queueType: 'classic'`,
    `"${classic}" is not durable`,
    `"${classic}" is deleted with its last consumer`,
  ]) {
    assert.ok(said.includes(part), `missing: ${part}\nin: ${said}`)
  }
})

test('What a queue has more than ours and loses nothing by is left as it is.', {
  skip,
}, async () => {
  const queue = await declared('own', {
    arguments: {
      ...quorum,
      'x-max-length': 5,
      'x-overflow': 'reject-publish',
      'x-single-active-consumer': true,
      'x-delivery-limit': 100,
      'x-dead-letter-exchange': 'amq.topic',
      'x-dead-letter-strategy': 'at-least-once',
    },
  })
  assert.equal(await refusal([queue]), '')
})

test('What lies under the names of the delays and is something else is refused as such, and left as it is.', {
  skip,
}, async () => {
  const delayPrefix = freshName('delay')
  const queue = `${delayPrefix}.25`
  used.push(queue, `${delayPrefix}.stranded`)
  await withChannel(address, (channel) => channel.assertQueue(queue, { durable: true }))
  const text = await refusal([await declared('delayed', { arguments: quorum })], {
    delays: true,
    delayPrefix,
  })
  assert.match(text, /is not what delays need .*pass another delayPrefix/)
  assert.ok(
    text.includes(`"${queue}", which delays need, has queue-type classic, and needs quorum`),
  )
})

test('With topology: check nothing is made, and all that is missing is listed.', {
  skip,
}, async () => {
  const there = await declared('there', { arguments: quorum })
  const [one, two] = [freshName('missing'), freshName('missing')]
  const said = await refusal([one, there, two], { topology: 'check' })
  assert.ok(
    said.includes(`"${one}" does not exist`) && said.includes(`"${two}" does not exist`),
    said,
  )
  assert.ok(!said.includes(there))
  await withChannel(address, (channel) => assert.rejects(channel.checkQueue(one), /404/))
  const delays = { topology: 'check', delays: true, delayPrefix: freshName('ladder') } as const
  assert.match(await refusal([there], delays), /which delays need, does not exist/)
  assert.equal(await refusal([there], { topology: 'check' }), '')
})

test('With topology: check the queues and exchanges that delays need are compared one by one.', {
  skip,
}, async () => {
  const queue = await declared('compared', { arguments: quorum })
  const delayPrefix = freshName('hops')
  const delays = { delays: true, delayPrefix } as const
  assert.equal(await refusal([queue], delays), '')
  const hops = Array.from(
    { length: 26 },
    (_, at) => `${delayPrefix}.${String(at).padStart(2, '0')}`,
  )
  const [unit = '', second = '', third = ''] = hops
  const exchanges = [...hops, `${delayPrefix}.landing`, `${delayPrefix}.stranded`]
  used.push(...hops, `${delayPrefix}.stranded`)
  try {
    assert.equal(await refusal([queue], { ...delays, topology: 'check' }), '')
    await withChannel(address, async (channel) => {
      for (const name of [unit, second]) await channel.deleteQueue(name)
      await channel.assertQueue(unit, {
        arguments: {
          ...quorum,
          'x-message-ttl': 65,
          'x-max-length': 5,
          'x-expires': 600_000,
          'x-overflow': 'drop-head',
        },
      })
      await channel.assertQueue(second, { durable: true })
      await channel.deleteExchange(third)
      await channel.assertExchange(third, 'fanout', { durable: true })
    })
    const said = await refusal([queue], { ...delays, topology: 'check' })
    for (const part of [
      `queue "${unit}", which delays need, has overflow drop-head, and needs reject-publish`,
      `queue "${unit}", which delays need, has message-ttl 65, and needs 64`,
      `queue "${unit}", which delays need, has dead-letter-exchange not set, and needs ${delayPrefix}.landing`,
      `queue "${unit}", which delays need, has dead-letter-strategy not set, and needs at-least-once`,
      `queue "${unit}", which delays need, has expires 600000, and needs none`,
      `queue "${unit}", which delays need, has max-length 5, and needs none`,
      `queue "${second}", which delays need, has queue-type classic, and needs quorum`,
      `exchange "${third}" is not what delays need (`,
      "make them once with topology: 'create', or pass delays: false",
    ]) {
      assert.ok(said.includes(part), `missing: ${part}\nin: ${said}`)
    }
    assert.ok(!said.includes(`"${hops[3]}`))
  } finally {
    await withChannel(address, async (channel) => {
      for (const name of exchanges) await channel.deleteExchange(name)
    })
  }
})

test('Without the management API it is said once, of the queues that were there, that their policies are not seen.', {
  skip,
}, async () => {
  const queues = [
    await declared('seen', { arguments: quorum }),
    await declared('seen', { arguments: quorum }),
  ]
  const warnings: string[] = []
  const logger = { ...silentLogger, warn: (line: string) => void warnings.push(line) }
  const transport = await openRabbit({ url: address, delays: false }, logger)
  await ensure(transport, ...queues)
  await ensure(transport, ...queues)
  await transport.close()
  const policies = warnings.filter((line) => line.includes('no policy is seen'))
  assert.equal(policies.length, 1)
  for (const part of [...queues, 'message-ttl', 'drop-head', 'delivery-limit']) {
    assert.ok(policies[0]?.includes(part), part)
  }
  assert.ok(transport.facts?.some((fact) => fact.startsWith('policies: without `management`')))
  assert.ok(transport.facts?.some((fact) => fact.includes('consumerTimeoutMs says 1800000 ms')))
})

test('What the management API was asked is not said to be unseen.', {
  skip: managementUrl === undefined,
}, async () => {
  const queue = await declared('asked', { arguments: quorum })
  const warnings: string[] = []
  const logger = { ...silentLogger, warn: (line: string) => void warnings.push(line) }
  const management = { url: managementUrl ?? '' }
  const transport = await openRabbit({ url: address, delays: false, management }, logger)
  await ensure(transport, queue)
  await transport.close()
  assert.deepEqual(warnings, [])
  assert.ok(!transport.facts?.some((fact) => fact.startsWith('policies:')))
})

test('With topology: none nothing is looked at, and a queue that is there works.', {
  skip,
}, async () => {
  const queue = await declared('plain', { arguments: quorum })
  const transport = await openRabbit({ url: address, topology: 'none' })
  assert.equal(transport.traits.delay, 'none')
  await ensure(transport, queue, freshName('missing'))
  const [sent] = await transport.send(queue, [envelope()], { signal: never })
  assert.equal(sent?.ok, true)
  await transport.close()
})

test('A policy that limits deliveries is seen through the management API, and refused.', {
  skip: managementUrl === undefined,
}, async () => {
  const queue = await declared('policy', { arguments: quorum })
  const management = { url: managementUrl ?? '' }
  assert.equal(await refusal([queue], { management }), '')
  const { origin, username, password } = new URL(management.url)
  const policy = `${origin}/api/policies/%2F/${encodeURIComponent(queue)}`
  const authorization = `Basic ${btoa(`${username}:${password}`)}`
  const definition = { 'delivery-limit': 3 }
  const body = JSON.stringify({ pattern: `^${queue}$`, definition, 'apply-to': 'queues' })
  await fetch(policy, { method: 'PUT', headers: { authorization }, body })
  await until('the policy', async () =>
    (await refusal([queue], { management })).includes('at its return number 3 (delivery-limit'),
  )
  await fetch(policy, { method: 'DELETE', headers: { authorization } })
})

test('Options are refused all at once, with the nearest name and without a password.', {
  skip,
}, () => {
  const wrong = {
    url: 'http://user:geheim@host',
    queueTyp: 'quorum',
    topology: 'make',
    timeoutMs: 1,
    management: {},
  }
  assert.throws(
    () => Reflect.apply(rabbitmq, undefined, [wrong]),
    (error: unknown) => {
      const said = String(error)
      assert.match(said, /did you mean "queueType"/)
      assert.match(said, /topology: expected "create" or "check" or "none", got "make"/)
      assert.match(said, /timeoutMs: expected an integer from 100/)
      assert.match(said, /management\.url: expected an address that begins with http/)
      assert.match(said, /url: expected an address that begins with amqp:\/\/ or amqps:\/\//)
      assert.doesNotMatch(said, /geheim/)
      return true
    },
  )
  assert.throws(() => Reflect.apply(rabbitmq, undefined, [{}]), /expected either url .* or connect/)
})

test('A management API that does not answer is found out with a queue that is just made, too.', {
  skip,
}, async () => {
  const queue = freshName('unseen')
  used.push(queue)
  const said = await refusal([queue], { management: { url: 'http://127.0.0.1:9' } })
  assert.match(said, /the management API cannot say what queue ".*" is .*check management\.url/)
})

test('A vhost that is not there is named.', { skip }, async () => {
  const there = new URL(address)
  there.pathname = '/no%2Fsuch'
  const opening = openRabbit({ url: there.href })
  await assert.rejects(opening, {
    code: 'MILLRACE_DENIED',
    message: /^rabbitmq: the broker lets this account not into vhost "no\/such"; make the vhost/,
  })
})

test('A queue of another type is refused without the management API, too.', { skip }, async () => {
  const queue = await declared('typed', { arguments: quorum })
  assert.match(await refusal([queue], { queueType: 'classic' }), /is of type quorum, not classic/)
})

test("A queue's own consumer timeout counts instead of the broker's, where the server knows such a thing.", () => {
  const facts = {
    durable: true,
    autoDelete: false,
    arguments: new Map([['x-consumer-timeout', 60_000]]),
    policy: new Map([['consumer-timeout', 90_000]]),
  }
  const spec = { name: 'q', owner: 'o', maxDepth: undefined, handlerTimeoutMs: 55_000 }
  const options = resolve({ url: 'amqp://host' })
  const judged = (version: string) =>
    tooSlow(
      spec,
      { options, server: serverOf({ connection: { serverProperties: { version } } }) },
      facts,
    )
  assert.deepEqual(judged('3.11.9'), [])
  assert.deepEqual(judged('3.12.0'), [
    'queue "q": a handler may take 55000 ms, and the broker takes a delivery back after 60000 ms (the queue\'s consumer-timeout); shorten handlerTimeoutMs, or raise it',
  ])
})

test('A look makes nothing, and names what is wrong with what is there.', { skip }, async () => {
  const lossy = await declared('looked-at', { arguments: { ...quorum, 'x-message-ttl': 60_000 } })
  const missing = freshName('not-there')
  const specs = [lossy, missing].map((name) => ({ name, owner: 'team', maxDepth: undefined }))
  const { signal } = new AbortController()
  const delayPrefix = freshName('no-delays')
  for (const topology of ['create', 'check', 'none'] as const) {
    const transport = await openRabbit({ url: address, topology, delayPrefix })
    const found = (await transport.topology.differences?.(specs, signal)) ?? []
    const about = (part: string): number => found.filter((one) => one.includes(part)).length
    assert.equal(about('(message-ttl)') > 0, topology !== 'none', topology)
    assert.equal(about(`"${missing}" does not exist`), topology === 'check' ? 1 : 0, topology)
    assert.equal(about('which delays need, does not exist') > 0, topology === 'check', topology)
    await transport.close()
  }
  for (const queue of [missing, `${delayPrefix}`]) {
    await assert.rejects(
      withChannel(address, (channel) => channel.checkQueue(queue)),
      {
        code: 404,
      },
    )
  }
})
