import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { type Connector, createMillrace, defineQueue, PayloadTooLargeError } from 'millrace'
import { memory } from 'millrace/memory'
import { sqlite } from 'millrace/sqlite'
import { z } from 'zod'
import { silentLogger } from '../../src/model/logger.ts'
import { databaseFile } from '../transports/sqlite-harness.ts'

/** Of memory and SQL; see docs/guide/backends.md. */
const LIMIT = 16 * 1024 * 1024
/** Two bytes each in UTF-8 and one unit of a string, between two quotes: as many bytes as the limit, about half as many characters. */
const AT_LIMIT = 'é'.repeat((LIMIT - 2) / 2)

const texts = defineQueue({ name: 'texts', owner: 'team-texts', payload: z.string() })

const backends: readonly [string, (t: TestContext) => Promise<Connector>][] = [
  ['memory', async () => memory()],
  ['sqlite', sqliteFile],
]

async function sqliteFile(t: TestContext): Promise<Connector> {
  const { file, dispose } = await databaseFile()
  t.after(dispose)
  return sqlite({ file })
}

for (const [name, open] of backends) {
  test(`${name}: a payload of exactly the limit in bytes arrives, one byte more is refused`, async (t) => {
    const app = await createMillrace({
      transport: await open(t),
      queues: [texts],
      logger: silentLogger,
    })
    t.after(() => app.close())
    for (const tooLong of [`${AT_LIMIT}a`, 'a'.repeat(LIMIT - 1)]) {
      const refusal = (index?: number) => (error: unknown) => {
        assert.ok(error instanceof PayloadTooLargeError, String(error))
        assert.match(String(error), new RegExp(`${LIMIT + 1} .*${LIMIT}\\b`))
        assert.equal(error.fields?.['index'], index)
        return true
      }
      await assert.rejects(app.send(texts, tooLong), refusal())
      await assert.rejects(app.sendBatch(texts, ['a', tooLong]), refusal(1))
    }
    assert.equal((await app.admin.stats(texts)).depth, 0)

    await app.send(texts, AT_LIMIT)
    await app.sendBatch(texts, ['a'.repeat(LIMIT - 2)])
    const came: string[] = []
    const both = Promise.withResolvers<void>()
    app.work(texts, ({ payload }) => {
      if (came.push(payload) === 2) both.resolve()
    })
    await app.start()
    await both.promise
    // Not compared by assert, which would print them.
    assert.deepEqual([came[0] === AT_LIMIT, came[1] === 'a'.repeat(LIMIT - 2)], [true, true])
  })
}
