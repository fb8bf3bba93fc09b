import { type ClusterClient, type SentinelClient, typed } from './client-shapes.ts'
import { untilReady } from './until-ready.ts'
import type { Wire } from './wire.ts'

export type ManyServers =
  | { readonly kind: 'cluster'; readonly client: ClusterClient }
  | { readonly kind: 'sentinel'; readonly client: SentinelClient }

/** Several servers behind one client, which finds the right one, follows a failover and has an ear of its own. */
export function manyWire(servers: ManyServers, own: boolean): Wire {
  const { client } = servers
  return {
    finds: true,
    send(key, args, bytes) {
      if (servers.kind === 'cluster') {
        return servers.client.sendCommand(key, false, args, typed(bytes))
      }
      return servers.client.sendCommand(false, args, typed(bytes))
    },
    // A cluster that loses a node is not ready as a whole, and its other queues work.
    isReady: () => client.isOpen,
    ready: () => untilReady(client),
    generation: () => 0,
    renew() {},
    listen: (channel, hear) => client.subscribe(channel, hear),
    probeEar: () => Promise.resolve(),
    renewEar: () => Promise.resolve(),
    close() {
      if (!own) return
      try {
        client.destroy()
      } catch {}
    },
  }
}
