import type { Broker } from '@platformatic/kafka'
import { anyBroker, ask, type Client, type Cluster } from './client.ts'

/** The broker that looks after a group. */
export interface Coordinator {
  find(): Promise<Broker>
  /** It is another one now, or was away: ask again. */
  forget(): void
}

const GROUP = 0

export function coordinatorOf(cluster: Cluster, client: Client, group: string): Coordinator {
  let known: Promise<Broker> | undefined
  const look = async (): Promise<Broker> => {
    const broker = await anyBroker(cluster, client)
    const call = { cluster, client, broker, what: 'asking for a coordinator' }
    const { api } = cluster.module.findCoordinatorV4
    const { coordinators } = await ask(call, api, GROUP, [group])
    const found = coordinators[0]
    if (found === undefined) throw new Error(`no broker says who coordinates group ${group}`)
    return { host: found.host, port: found.port }
  }
  return {
    find: () => {
      known ??= look().catch((error: unknown) => {
        known = undefined
        throw error
      })
      return known
    },
    forget: () => {
      known = undefined
    },
  }
}
