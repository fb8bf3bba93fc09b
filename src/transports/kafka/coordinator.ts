import type { Broker } from '@platformatic/kafka'
import { pause } from '../../model/clock.ts'
import { anyBroker, ask, type Client, type Cluster } from './client.ts'
import { codes, codesIn } from './fault.ts'

/** The broker that looks after a group. */
export interface Coordinator {
  find(): Promise<Broker>
  /** It is another one now, or was away: ask again. */
  forget(): void
}

const GROUP = 0
const AGAIN_MS = 100

export function coordinatorOf(cluster: Cluster, client: Client, group: string): Coordinator {
  let known: Promise<Broker> | undefined
  const look = async (): Promise<Broker> => {
    // Of the client that asks: that of a group has no limit for a call, as a join takes as long as it takes.
    const broker = await anyBroker(cluster)
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

const MOVING = [codes.coordinatorLoading, codes.coordinatorNotAvailable, codes.notCoordinator]

/**
 * Asks the coordinator, and waits while there is none: a new cluster makes the topic of positions at the first question, and
 * says for some seconds that nobody coordinates, then that it is still loading.
 */
export async function askCoordinator<T>(
  { clock, options, closing }: Cluster,
  coordinator: Coordinator,
  run: (broker: Broker) => Promise<T>,
): Promise<T> {
  const giveUpAt = clock.now() + options.timeoutMs
  for (;;) {
    try {
      return await run(await coordinator.find())
    } catch (error) {
      const found = codesIn(error)
      const isMoving = MOVING.some((code) => found.has(code))
      if (!isMoving || closing.aborted || clock.now() >= giveUpAt) throw error
      coordinator.forget()
      await pause(clock, AGAIN_MS, closing)
    }
  }
}
