import type { RabbitmqServer } from '../../scripts/rig/rabbitmq-server.ts'
import { read } from '../../src/model/probe.ts'

/** The name of the node that leads a quorum queue, as any node tells. */
export async function leaderOf(node: RabbitmqServer, queue: string): Promise<unknown> {
  const { origin, username, password } = new URL(node.managementUrl)
  const headers = { authorization: `Basic ${btoa(`${username}:${password}`)}` }
  const answer = await fetch(`${origin}/api/queues/%2F/${encodeURIComponent(queue)}`, { headers })
  const said: unknown = await answer.json()
  return read(said, 'leader') ?? read(said, 'node')
}
