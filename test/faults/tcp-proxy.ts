import { connect, createServer, type Server, type Socket } from 'node:net'
import { freePort } from '../../scripts/rig/command.ts'
import { type Direction, pump } from './tcp-pump.ts'

/** A proxy on loopback that does to a connection what networks do. All faults but `cut` last until `heal`. */
export interface TcpProxy {
  readonly port: number
  /** Connections that are open now. */
  open(): number
  /** Ends every connection, as a server that goes away does. New ones work. */
  cut(): void
  /** New connections are refused, as by a machine on which nothing listens; open ones go on. */
  refuse(): void
  /** All is taken and nothing is passed on, and nobody is told. New connections are accepted into the hole. */
  blackHole(): void
  /** Nothing passes in this direction, in open and new connections; the other direction goes on. */
  block(direction: Direction): void
  /** Of each connection so many bytes of what the server says are read, and no more: as by a process that is stopped; for good. */
  stopAfter(bytes: number): void
  /** What passes, passes this much later, in both directions. */
  slow(delayMs: number): void
  /**
   * The network is well again for new connections and for slow ones. One that lost bytes in a hole or a blocked direction
   * stays as silent as it is, as behind a firewall that forgot it. If one end of it hangs up, both ends are closed.
   */
  heal(): Promise<void>
  /** Idempotent. */
  close(): Promise<void>
}

/** What is wrong with the network now. */
interface Weather {
  readonly blocked: Set<Direction>
  delayMs: number
  /** Of what the server says, for each connection. */
  readMax: number
}

interface Pair {
  block(direction: Direction): void
  stopAfter(bytes: number): void
  destroy(): void
}

export async function tcpProxy(targetPort: number): Promise<TcpProxy> {
  const pairs = new Set<Pair>()
  const weather: Weather = { blocked: new Set(), delayMs: 0, readMax: Number.POSITIVE_INFINITY }
  const server = createServer({ allowHalfOpen: true }, (near) =>
    accept(near, targetPort, weather, pairs),
  )
  const port = await freePort()
  await listen(server, port)
  const block = (direction: Direction): void => {
    weather.blocked.add(direction)
    for (const pair of pairs) pair.block(direction)
  }
  const cut = (): void => {
    for (const pair of pairs) pair.destroy()
  }
  let closed = false
  return {
    port,
    open: () => pairs.size,
    cut,
    refuse: () => stopListening(server),
    blackHole() {
      block('up')
      block('down')
    },
    block,
    stopAfter(bytes) {
      weather.readMax = bytes
      for (const pair of pairs) pair.stopAfter(bytes)
    },
    slow(delayMs) {
      weather.delayMs = delayMs
    },
    async heal() {
      weather.blocked.clear()
      weather.delayMs = 0
      weather.readMax = Number.POSITIVE_INFINITY
      if (!server.listening && !closed) await listen(server, port)
    },
    async close() {
      closed = true
      stopListening(server)
      cut()
    },
  }
}

function accept(near: Socket, targetPort: number, weather: Weather, pairs: Set<Pair>): void {
  const far = connect({ port: targetPort, host: '127.0.0.1', allowHalfOpen: true })
  const destroy = (): void => {
    pairs.delete(pair)
    near.destroy()
    far.destroy()
  }
  const delay = (): number => weather.delayMs
  const pumps = { up: pump(near, far, delay, destroy), down: pump(far, near, delay, destroy) }
  const pair: Pair = {
    block: (direction) => pumps[direction].block(),
    stopAfter: (bytes) => pumps.down.stopAfter(bytes),
    destroy,
  }
  pairs.add(pair)
  pair.stopAfter(weather.readMax)
  for (const direction of weather.blocked) pair.block(direction)
  for (const socket of [near, far]) {
    socket.on('error', destroy)
    socket.on('close', () => {
      if (near.destroyed && far.destroyed) pairs.delete(pair)
    })
  }
}

function listen(server: Server, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, '127.0.0.1', () => {
      server.off('error', reject)
      resolve()
    })
  })
}

/** At once; the event of node:net waits for open connections, which may go on. */
function stopListening(server: Server): void {
  if (server.listening) server.close()
}
