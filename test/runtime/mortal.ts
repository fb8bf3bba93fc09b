import type { Connector } from 'millrace'

/** A connector whose connection can be made to vanish, as that of a killed process: silence in both directions. */
export function mortal(connector: Connector): { readonly connector: Connector; kill(): void } {
  let killed = false
  const never = (): Promise<never> => new Promise(() => undefined)
  return {
    kill: () => {
      killed = true
    },
    connector: {
      name: connector.name,
      connect: async (context) => {
        const transport = await connector.connect(context)
        return {
          ...transport,
          close: async () => undefined,
          subscribe: async (queue, options) => {
            const inner = await transport.subscribe(queue, options)
            const { renew } = inner
            return {
              ...inner,
              receive: (options) => (killed ? never() : inner.receive(options)),
              settle: (batch) => (killed ? never() : inner.settle(batch)),
              ...(renew && {
                renew: (batch: Parameters<typeof renew>[0], leaseMs: number) =>
                  killed ? never() : renew(batch, leaseMs),
              }),
              close: async () => undefined,
            }
          },
        }
      },
    },
  }
}
