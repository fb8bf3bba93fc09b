import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { type RabbitmqServer, startRabbitmq } from '../../scripts/rig/rabbitmq-server.ts'
import { backendUrl } from '../backends.ts'
import { campaign } from './order-campaign.ts'
import { leaderOf } from './rabbitmq-leader.ts'

const skip = backendUrl('rabbitmq') === undefined

test('rabbitmq: workers are killed and stopped, the node that leads a lane is killed three times, and each key has all its effects, once and in order', {
  skip,
}, async (t) => {
  const first = await startRabbitmq()
  const nodes: RabbitmqServer[] = [first]
  t.after(async () => {
    for (const node of nodes.reverse()) await node.stop()
  })
  for (const _ of ['second', 'third']) nodes.push(await startRabbitmq({ join: first }))
  const folder = await mkdtemp(join(tmpdir(), 'millrace-order-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  const at = { url: nodes.map(({ url }) => url), prefix: 'order-' }
  const files = { file: join(folder, 'effects.db'), storeFile: join(folder, 'store.db') }
  const place = { kind: 'rabbitmq', ...at, ...files } as const
  await campaign(t, place, join(folder, 'record.ndjson'), leaderKiller(t, nodes))
})

/** Kills the node that leads a lane, and starts the one that it had killed before. */
function leaderKiller(t: TestContext, nodes: readonly RabbitmqServer[]): () => Promise<void> {
  let dead: RabbitmqServer | undefined
  return async () => {
    await dead?.resume()
    const asked = nodes.find((node) => node !== dead)
    assert.ok(asked)
    const leader = await leaderOf(asked, 'order-steps.lane.0')
    dead = nodes.find((node) => node.place.node === leader)
    assert.ok(dead, `${leader} is none of ours`)
    t.diagnostic(`killed ${dead.place.node}`)
    await dead.halt('crash')
  }
}
