import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CreateQueueCommand } from '@aws-sdk/client-sqs'
import { createMillrace, defineQueue, PermanentError, TransientError } from 'millrace'
import { type SqsOptions, sqs } from 'millrace/sqs'
import { memoryStore } from 'millrace/store'
import { z } from 'zod'
import { silentLogger } from '../../src/model/logger.ts'
import { watchedClient } from './sqs-client.ts'
import { account, freshName } from './sqs-harness.ts'
import { sqsServers } from './sqs-servers.ts'
import { until } from './until.ts'

const payload = z.object({ n: z.number() })

for (const server of sqsServers()) {
  for (const kind of ['standard', 'fifo'] as const) {
    test(`${server.name}, ${kind}: an app sends, works, retries, buries and redrives as on any other backend.`, async (t) => {
      const orders = defineQueue({
        name: freshName(),
        owner: 'team',
        payload,
        retry: { attempts: 3, baseMs: 10, maxMs: 20 },
      })
      const options: SqsOptions = { ...account, endpoint: server.url, kind }
      const app = await createMillrace({
        transport: sqs(options),
        store: memoryStore(),
        queues: [orders],
        logger: silentLogger,
      })
      t.after(() => app.close({ timeoutMs: 5_000 }))
      const runs: string[] = []
      let isMended = false
      app.work(orders, async ({ payload: { n }, attempt }) => {
        runs.push(`${n}:${attempt}`)
        if (n === 2 && attempt < 3) throw new TransientError('not yet')
        if (n === 3 && !isMended) throw new PermanentError('never')
      })
      await app.start()
      const results = await app.sendBatch(orders, [{ n: 1 }, { n: 2 }, { n: 3 }])
      assert.equal(results.length, 3)
      await until('all runs', () => ['1:1', '2:3', '3:1'].every((run) => runs.includes(run)))
      await until('the dead letter', async () => {
        return (await app.admin.deadLetters.list(orders)).items.length === 1
      })
      const [letter] = (await app.admin.deadLetters.list(orders)).items
      assert.equal(letter?.errorClass, 'permanent')
      isMended = true
      const redrive = await app.admin.deadLetters.redrive(orders, { ids: [letter?.id ?? ''] })
      assert.equal(redrive.moved, 1)
      await until('the redriven run', () => runs.filter((run) => run === '3:1').length === 2)
      assert.deepEqual([...runs].sort(), ['1:1', '2:1', '2:2', '2:3', '3:1', '3:1'])
      await until('an empty queue', async () => {
        const { depth, inFlight } = await app.admin.stats(orders)
        return depth === 0 && inFlight === 0
      })
    })
  }

  test(`${server.name}: an app does not start on a queue whose redrive policy would take its messages away.`, async (t) => {
    const { client } = watchedClient(server)
    t.after(() => client.destroy())
    const [name, dead] = [freshName(), freshName()]
    await client.send(new CreateQueueCommand({ QueueName: dead }))
    const deadLetterTargetArn = `arn:aws:sqs:us-east-1:000000000000:${dead}`
    const RedrivePolicy = JSON.stringify({ deadLetterTargetArn, maxReceiveCount: 10 })
    await client.send(new CreateQueueCommand({ QueueName: name, Attributes: { RedrivePolicy } }))
    const queue = defineQueue({ name, owner: 'team', payload })
    const opening = createMillrace({
      transport: sqs({ client }),
      store: memoryStore(),
      queues: [queue],
      logger: silentLogger,
    })
    await assert.rejects(opening, /maxReceiveCount 10.*8 attempts.*raise it to 18/)
  })
}
