import assert from 'node:assert/strict'
import { test } from 'node:test'
import { connect } from 'amqplib'
import type { Logger } from '../../src/model/logger.ts'
import { silentLogger } from '../../src/model/logger.ts'
import type { RabbitmqOptions } from '../../src/transports/rabbitmq/options.ts'
import { backendUrl } from '../backends.ts'
import { openRabbit } from './rabbitmq-subjects.ts'

const url = backendUrl('rabbitmq')

async function warnings(options: RabbitmqOptions): Promise<readonly string[]> {
  const said: string[] = []
  const logger: Logger = { ...silentLogger, warn: (message) => void said.push(message) }
  const transport = await openRabbit(options, logger)
  await transport.close()
  return said
}

if (url !== undefined) {
  const without = new URL(url)
  without.searchParams.set('heartbeat', '0')

  for (const [name, options] of [
    ['by the url', { url: without.href }],
    ['by connect', { connect: () => connect(without.href) }],
  ] as const) {
    test(`A connection without a heartbeat (${name}) is named in the log, since a stopped process cannot know then that its messages are elsewhere.`, async () => {
      const [first, ...more] = await warnings(options)
      assert.match(
        first ?? '',
        /^rabbitmq: the connection has no heartbeat: .* leave "heartbeat=0" out/,
      )
      assert.deepEqual(more, [])
    })
  }

  test('A connection with a heartbeat, by the url or by connect, is nothing to warn of.', async () => {
    assert.deepEqual(await warnings({ url }), [])
    assert.deepEqual(await warnings({ connect: () => connect(url) }), [])
  })
}
