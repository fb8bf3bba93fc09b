// Works; asked to, it kills itself when a copy or a dead letter is confirmed and the position behind it is not committed.
import { type Connector, PermanentError } from 'millrace'
import { appOn, noteRun, type Place, queueOf } from './kafka-between-app.ts'

const [, , json = '', dies] = process.argv
const place: Place = JSON.parse(json)
let hasFailed = false

/** The layers put copies and dead letters where they go before they settle what stands for them here. */
function mortal(connector: Connector): Connector {
  return {
    name: connector.name,
    connect: async (context) => {
      const transport = await connector.connect(context)
      return {
        ...transport,
        subscribe: async (queue, options) => {
          const subscription = await transport.subscribe(queue, options)
          return {
            ...subscription,
            settle: async (batch) => {
              if (hasFailed && dies === 'dies') {
                process.kill(process.pid, 'SIGKILL')
                // The signal may take a moment; nothing of ours may run in it.
                Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
              }
              return subscription.settle(batch)
            },
          }
        },
      }
    },
  }
}

const { app } = await appOn(place, mortal)
app.work(
  queueOf(place),
  async ({ payload: { n } }, ctx) => {
    noteRun(place, n)
    if (place.ends === 'dead') {
      hasFailed = true
      throw new PermanentError('never')
    }
    if (dies === 'dies') {
      hasFailed = true
      throw new Error('now and then')
    }
    await ctx.tx((tx) => {
      tx.prepare('INSERT INTO effect VALUES (?)').run(n)
    })
  },
  { concurrency: 10 },
)
await app.start()
process.on('SIGTERM', () => void app.close({ timeoutMs: 1_000 }))
