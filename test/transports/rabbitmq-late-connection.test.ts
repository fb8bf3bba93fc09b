import { test } from 'node:test'
import { type ChannelModel, connect } from 'amqplib'
import { read } from '../../src/model/probe.ts'
import { backendUrl } from '../backends.ts'
import { openRabbit } from './rabbitmq-subjects.ts'
import { until } from './until.ts'

const url = backendUrl('rabbitmq')

if (url !== undefined) {
  test('A connection that is open again only when the transport is closed is ended without an error, and nothing of it keeps the process up.', async () => {
    const opened: ChannelModel[] = []
    const goOn = Promise.withResolvers<void>()
    let isSlow = false
    const transport = await openRabbit({
      connect: async () => {
        const one = await connect(url)
        opened.push(one)
        if (isSlow) await goOn.promise
        return one
      },
    })
    const first = opened.length
    isSlow = true
    for (const one of [...opened]) {
      const stream = read(one.connection, 'stream')
      const end = read(stream, 'destroy')
      if (typeof end === 'function') end.call(stream, new Error('cut off'))
    }
    await until('it connects again', () => opened.length === 2 * first)
    const late = opened.slice(first)
    await transport.close()
    let ended = 0
    for (const one of late) one.once('close', () => (ended += 1))
    goOn.resolve()
    await until('they have ended', () => ended === first)
  })
}
