import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createMillrace, defineQueue } from 'millrace'
import { z } from 'zod'
import { silentLogger } from '../../src/model/logger.ts'
import { sqlPlaces } from './app-places.ts'

for (const { name, open } of sqlPlaces) {
  test(`${name}: a queue that sheds keeps the newest, on counts that are exact and on counts that are sampled`, async (t) => {
    const { transport, dispose } = await open()
    const queue = defineQueue({
      name: 'readings',
      owner: 'team',
      payload: z.object({ n: z.number() }),
      capacity: { maxDepth: 20, whenFull: 'shed' },
    })
    const app = await createMillrace({ transport, queues: [queue], logger: silentLogger })
    const look = await createMillrace({ transport, queues: [queue], logger: silentLogger })
    t.after(() => Promise.all([app.close(), look.close()]).then(dispose))
    const ids: string[] = []
    for (let n = 0; n < 60; n++) ids.push((await app.send(queue, { n })).id)
    assert.equal((await look.admin.stats(queue)).depth, 20)
    assert.equal(app.counters().readings?.shed, 40)
    const kept = await Promise.all(ids.map((id) => look.admin.messages.get(queue, id)))
    assert.deepEqual(
      kept.map((found) => found !== null),
      ids.map((_, n) => n >= 40),
    )
  })

  test(`${name}: sends at the same moment shed as if they came one after another, and never more than they store`, async (t) => {
    const { transport, dispose } = await open()
    const queue = defineQueue({
      name: 'readings',
      owner: 'team',
      payload: z.object({ n: z.number() }),
      capacity: { maxDepth: 5, whenFull: 'shed' },
    })
    const app = await createMillrace({ transport, queues: [queue], logger: silentLogger })
    t.after(() => app.close().then(dispose))
    const outcomes = await Promise.allSettled(
      Array.from({ length: 60 }, (_, n) => app.send(queue, { n }, { priority: n % 3 })),
    )
    const sent = outcomes.filter(({ status }) => status === 'fulfilled').length
    const { depth } = await app.admin.stats(queue)
    assert.equal(depth, 5)
    assert.equal(sent - (app.counters().readings?.shed ?? 0), depth)
    const kept = await Promise.all(
      outcomes.map(async (outcome) =>
        outcome.status === 'fulfilled' ? app.admin.messages.get(queue, outcome.value.id) : null,
      ),
    )
    // With twenty of the highest priority sent, none lower can have stayed.
    assert.deepEqual(
      kept.flatMap((found, n) => (found === null ? [] : [n % 3])),
      [2, 2, 2, 2, 2],
    )
  })
}
