import { type SingleClient, typed } from './client-shapes.ts'
import { untilReady } from './until-ready.ts'
import type { Wire } from './wire.ts'

/**
 * One server. Commands and the listening connection never share a socket. A client that was given is neither closed nor
 * used for listening: that one is a duplicate of it, and ours.
 *
 * @param own whether the client was made by us
 */
export function singleWire(given: SingleClient, own: boolean): Wire {
  let client = given
  let ear: Promise<SingleClient> | undefined
  /** That of the ear as soon as it connects: a server that hangs answers no handshake, and nothing limits that wait. */
  let earClient: SingleClient | undefined
  let generation = 0
  let closed = false
  const channels = new Map<string, () => void>()

  const openEar = async (): Promise<SingleClient> => {
    if (closed) throw new Error('the client was closed')
    const made = client.duplicate()
    earClient = made
    made.on('error', () => {})
    try {
      await made.connect()
      for (const [channel, hear] of channels) await made.subscribe(channel, hear)
    } catch (error) {
      destroy(made)
      throw error
    }
    // After a reconnect the client listens again by itself; what was said meanwhile nobody has heard.
    made.on('ready', () => {
      for (const hear of channels.values()) hear()
    })
    return made
  }
  const dropEar = (): void => {
    destroy(earClient)
    ear = undefined
    earClient = undefined
  }

  return {
    finds: false,
    send: (_key, args, bytes) => client.sendCommand(args, typed(bytes)),
    isReady: () => client.isReady,
    ready: () => untilReady(client),
    generation: () => generation,
    renew(of) {
      if (!own || closed || of !== generation) return
      generation += 1
      const old = client
      client = old.duplicate()
      client.on('error', () => {})
      client.connect().catch(() => {})
      destroy(old)
    },
    async listen(channel, hear) {
      const known = ear
      channels.set(channel, hear)
      ear ??= openEar()
      const mine = ear
      try {
        const listening = await mine
        if (known !== undefined) await listening.subscribe(channel, hear)
      } catch (error) {
        // The ear that came after it listens to this channel, too.
        if (ear !== mine) return
        channels.delete(channel)
        if (known === undefined) ear = undefined
        throw error
      }
    },
    probeEar: async () => await (await ear)?.ping(),
    async renewEar() {
      dropEar()
      if (closed) return
      ear = openEar()
      await ear
      for (const hear of channels.values()) hear()
    },
    close() {
      closed = true
      dropEar()
      if (own) destroy(client)
    },
  }
}

/** Throws for a client that is closed already. */
function destroy(client: SingleClient | undefined): void {
  try {
    client?.destroy()
  } catch {}
}
