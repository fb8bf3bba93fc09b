import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { type RabbitmqServer, startRabbitmq } from '../../scripts/rig/rabbitmq-server.ts'
import { backendUrl } from '../backends.ts'
import { ensure, envelope, freshName, never, openRabbit } from '../transports/rabbitmq-subjects.ts'
import { until } from '../transports/until.ts'
import { leaderOf } from './rabbitmq-leader.ts'
import { openLoad } from './rabbitmq-load.ts'

const skip = backendUrl('rabbitmq') === undefined

test('Of three nodes the one that leads a queue is killed under load, then each is restarted: nothing is lost, work goes on.', {
  skip,
}, async (t: TestContext) => {
  const first = await startRabbitmq()
  const nodes: RabbitmqServer[] = [first]
  t.after(async () => {
    for (const node of nodes.reverse()) await node.stop()
  })
  nodes.push(await startRabbitmq({ join: first }))
  nodes.push(await startRabbitmq({ join: first }))
  const urls = nodes.map((node) => node.url)
  const queue = freshName('led')
  const transport = await openRabbit({ url: urls, timeoutMs: 15_000, heartbeatMs: 2_000 })
  t.after(() => transport.close())
  await ensure(transport, queue)
  const leader = await leaderOf(first, queue)
  const led = nodes.find((node) => node.place.node === leader)
  assert.ok(led, `${leader} is none of ours`)
  const load = await openLoad(transport, queue)
  await until('some work', () => load.done.size > 100)
  const delayed = envelope({ delayMs: 3_000 })
  const [sent] = await transport.send(queue, [delayed], { signal: never })
  assert.equal(sent?.ok, true)
  await led.halt('crash')
  const killedAt = Date.now()
  const [seen, confirmed] = [load.done.size, load.confirmed.size]
  await until('work without it', () => load.done.size > seen + 100, 60_000)
  await until('confirms without it', () => load.confirmed.size > confirmed + 100, 60_000)
  t.diagnostic(`work goes on ${Date.now() - killedAt} ms after the leader was killed`)
  await until('the delayed one', () => load.done.has(delayed.id), 60_000)

  await led.resume()
  for (const node of nodes) {
    await node.restart('clean')
    const [worked, stored] = [load.done.size, load.confirmed.size]
    await until('work after a restart', () => load.done.size > worked + 100, 60_000)
    await until('confirms after a restart', () => load.confirmed.size > stored + 100, 60_000)
  }
  await load.finish()
  t.diagnostic(`${load.confirmed.size} confirmed, all done, ${load.again()} delivered again`)
})
