import type { Connector } from 'millrace'
import type { Settled, Settlement } from '../../src/model/delivery.ts'

type Settle = (batch: readonly Settlement[]) => Promise<readonly Settled[]>

/** Ends this process as a power cut would. */
export function dieNow(): void {
  process.kill(process.pid, 'SIGKILL')
  // The signal may take a moment; nothing of ours may run in it.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
}

/** The transport, with something around each of its settlements. */
export function aroundSettlements(
  connector: Connector,
  around: (batch: readonly Settlement[], settle: Settle) => Promise<readonly Settled[]>,
): Connector {
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
            settle: (batch) => around(batch, (all) => subscription.settle(all)),
          }
        },
      }
    },
  }
}
