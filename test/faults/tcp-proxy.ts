import { connect, createServer, type Socket } from 'node:net'

/** A proxy on loopback that can lose a network: what runs through it hangs, and nobody is told. */
export interface TcpProxy {
  readonly port: number
  /** Connections made while the hole was open stay dead for good, as behind a firewall that forgot them. */
  blackHole(): void
  /** New connections work again. */
  heal(): void
  /** Ends every connection, as a server that goes away does. */
  cut(): void
  close(): Promise<void>
}

export async function tcpProxy(targetPort: number): Promise<TcpProxy> {
  const pairs = new Set<readonly [Socket, Socket]>()
  let hole = false
  const server = createServer((near) => {
    const far = connect(targetPort, '127.0.0.1')
    const pair = [near, far] as const
    pairs.add(pair)
    for (const socket of pair) socket.on('error', () => {})
    const end = (): void => {
      pairs.delete(pair)
      near.destroy()
      far.destroy()
    }
    near.on('close', end)
    far.on('close', end)
    if (hole) silence(pair)
    near.on('data', (bytes) => void (isSilent(pair) || far.write(bytes)))
    far.on('data', (bytes) => void (isSilent(pair) || near.write(bytes)))
  })
  const silent = new WeakSet<readonly [Socket, Socket]>()
  const silence = (pair: readonly [Socket, Socket]): void => void silent.add(pair)
  const isSilent = (pair: readonly [Socket, Socket]): boolean => silent.has(pair)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  return {
    port: typeof address === 'object' && address ? address.port : 0,
    blackHole() {
      hole = true
      pairs.forEach(silence)
    },
    heal() {
      hole = false
    },
    cut() {
      for (const [near] of pairs) near.destroy()
    },
    close: () =>
      new Promise((resolve) => {
        for (const [near] of pairs) near.destroy()
        server.close(() => resolve())
      }),
  }
}
