import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createMillrace, defineQueue, hasCode } from 'millrace'
import { memory } from 'millrace/memory'
import { z } from 'zod'

const basics = { name: 'reports', owner: 'team', payload: z.object({ tenant: z.string() }) }

test('A payload without a fair key, or with a weight out of bounds, is refused at the send and names what was given.', async () => {
  const weights: Readonly<Record<string, number>> = { heavy: 101, light: 0, odd: Number.NaN }
  const reports = defineQueue({
    ...basics,
    fairBy: ({ tenant }) => {
      if (tenant === 'broken') throw new Error('no tenant')
      return tenant
    },
    fairWeight: (key) => weights[key] ?? 2,
  })
  const app = await createMillrace({ transport: memory(), queues: [reports] })
  const refused: Readonly<Record<string, RegExp>> = {
    '': /has no fair key: fairBy of queue "reports" gave "", expected 1 to 255/,
    'two words': /fairBy of queue "reports" gave "two words"/,
    broken: /fairBy of queue "reports" threw: no tenant/,
    heavy: /fairWeight of queue "reports" gave 101 for "heavy", expected a number from 0.01 to 100/,
    light: /gave 0 for "light"/,
    odd: /gave NaN for "odd"/,
  }
  for (const [tenant, text] of Object.entries(refused)) {
    await assert.rejects(app.send(reports, { tenant }), (error) => {
      assert.ok(hasCode(error, 'MILLRACE_INVALID_PAYLOAD'), String(error))
      assert.match(String(error), text)
      return true
    })
  }
  assert.equal((await app.send(reports, { tenant: 'fine' })).duplicate, false)
  await app.close()
})

test('Tenants take turns from send to handler, by their weights.', async () => {
  const reports = defineQueue({
    ...basics,
    fairBy: ({ tenant }) => tenant,
    fairWeight: (tenant) => (tenant === 'gold' ? 3 : 1),
  })
  const app = await createMillrace({ transport: memory(), queues: [reports] })
  const many = (tenant: string): { tenant: string }[] =>
    Array.from({ length: 400 }, () => ({ tenant }))
  await app.sendBatch(reports, many('crowd'))
  await app.sendBatch(reports, many('gold'))
  await app.send(reports, { tenant: 'single' })
  const seen: string[] = []
  app.work(reports, ({ payload }) => void seen.push(payload.tenant), { concurrency: 1 })
  await app.start()
  while (seen.length < 801) await new Promise((resolve) => setTimeout(resolve, 1))
  assert.ok(seen.indexOf('single') <= 6, `${seen.indexOf('single')} before it`)
  const golden = seen.slice(0, 100).filter((tenant) => tenant === 'gold').length
  assert.ok(golden >= 72 && golden <= 78, `${golden} of 100`)
  await app.close()
})
