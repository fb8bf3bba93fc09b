import { connect, createServer, type Socket } from 'node:net'
import { freePort } from '../../scripts/rig/command.ts'

/** A proxy before a broker that reads what it is asked, and lets a connection fall silent at one request. */
export interface SilenceProxy {
  readonly port: number
  /** What was asked since the last call: the number of the request in Kafka's protocol, and who asked, as in `3 of asking`. */
  asked(): ReadonlySet<string>
  /** The next request of this kind is the last that passes on its connection, and nobody is told: it stays open. */
  silenceAt(kind: string): void
  /** Whether that has happened. */
  isSilent(): boolean
  /** Idempotent. */
  close(): void
}

export async function silenceProxy(targetPort: number): Promise<SilenceProxy> {
  let asked = new Set<string>()
  const sockets = new Set<Socket>()
  let wanted: string | undefined
  let isReached = false
  const server = createServer((near) => {
    const far = connect({ port: targetPort, host: '127.0.0.1' })
    let isSilent = false
    const frames = framesOf((frame) => {
      const kind = kindOf(frame)
      asked.add(kind)
      if (kind !== wanted) return
      wanted = undefined
      isReached = true
      isSilent = true
    })
    near.on('data', (chunk) => {
      if (isSilent) return
      frames(chunk)
      far.write(chunk)
    })
    far.on('data', (chunk) => {
      if (!isSilent) near.write(chunk)
    })
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(one)
      one.on('error', () => one.destroy())
      one.on('close', () => {
        sockets.delete(one)
        other.destroy()
      })
    }
  })
  const port = await freePort()
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  return {
    port,
    asked() {
      const all = asked
      asked = new Set()
      return all
    },
    silenceAt(kind) {
      wanted = kind
      isReached = false
    },
    isSilent: () => isReached,
    close() {
      server.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}

const SIZE_BYTES = 4

/** Each request behind its size, however the network cuts them. */
function framesOf(onFrame: (frame: Buffer) => void): (chunk: Buffer) => void {
  let left = Buffer.alloc(0)
  return (chunk) => {
    left = Buffer.concat([left, chunk])
    while (left.length >= SIZE_BYTES) {
      const end = SIZE_BYTES + left.readInt32BE(0)
      if (left.length < end) return
      onFrame(left.subarray(SIZE_BYTES, end))
      left = left.subarray(end)
    }
  }
}

/** A request begins with its number, its version, a number of its own and the name of the client: `millrace-<purpose>-<random>`. */
function kindOf(frame: Buffer): string {
  const nameBytes = Math.max(0, frame.readInt16BE(8))
  const [, purpose = 'nobody'] = frame.toString('utf8', 10, 10 + nameBytes).split('-')
  return `${frame.readInt16BE(0)} of ${purpose}`
}
