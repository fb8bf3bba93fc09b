import { connect as amqpConnect } from 'amqplib'
import { DEFAULT_OWNER, type Harness } from 'millrace/conformance'
import { type RabbitmqSettings, rabbitmq } from 'millrace/rabbitmq'
import { systemClock } from '../../src/model/clock.ts'
import { silentLogger } from '../../src/model/logger.ts'
import { read } from '../../src/model/probe.ts'
import type { Transport } from '../../src/transport/transport.ts'

const { signal } = new AbortController()

export interface RabbitHarnessOptions {
  readonly url: string
  readonly queueType: 'quorum' | 'classic'
}

/** A harness over the raw transport; its queues and its delay queues are of its own and go away with it. */
export async function rabbitHarness({ url, queueType }: RabbitHarnessOptions): Promise<Harness> {
  const prefix = `kit-${queueType}-${process.pid}-`
  const settings: RabbitmqSettings = { queueType, prefix }
  const cuts = new WeakMap<Transport, () => void>()
  const names: string[] = []
  const connect = async (): Promise<Transport> => {
    const streams: unknown[] = []
    let isGone = false
    const open = async () => {
      if (isGone) throw new Error('this process is gone')
      const connection = await amqpConnect(url, { noDelay: true })
      streams.push(read(connection.connection, 'stream'))
      return connection
    }
    const transport = await rabbitmq({ ...settings, connect: open }).connect({
      signal,
      clock: systemClock(),
      random: Math.random,
      logger: silentLogger,
      migrate: 'auto',
    })
    cuts.set(transport, () => {
      isGone = true
      for (const stream of streams) {
        const end = read(stream, 'destroy')
        if (typeof end === 'function') end.call(stream, new Error('killed'))
      }
    })
    return transport
  }
  const first = await connect()
  return {
    name: `rabbitmq ${queueType}`,
    connect,
    async freshQueue({ maxDepth, owner = DEFAULT_OWNER } = {}) {
      const name = `queue ${names.length}`
      names.push(name)
      await first.topology.ensure([{ name, owner, maxDepth }], signal)
      return name
    },
    slow: 1,
    leaseMs: 500,
    vanish: async (transport) => cuts.get(transport)?.(),
    async dispose() {
      await first.close()
      const connection = await amqpConnect(url)
      const channel = await connection.createChannel()
      for (const name of names) await channel.deleteQueue(`${prefix}${name}`)
      await connection.close()
    },
  }
}
