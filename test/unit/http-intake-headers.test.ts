import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { createMillrace, defineQueue, silentLogger } from 'millrace'
import { intake } from 'millrace/http'
import { memory } from 'millrace/memory'
import { z } from 'zod'

const events = defineQueue({
  name: 'events',
  owner: 'team-test',
  payload: z.object({ n: z.int() }),
})

async function open(t: TestContext) {
  const app = await createMillrace({
    transport: memory(),
    queues: [events],
    logger: silentLogger,
  })
  t.after(() => app.close())
  const door = intake(app, { port: 0 })
  t.after(() => door.close({ timeoutMs: 0 }))
  await door.listen()
  const url = `${door.url}/queues/events/messages`
  const post = async (to: '' | '/batch', headers: Readonly<Record<string, string>>) => {
    const message = { n: 1 }
    const answer = await fetch(`${url}${to}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(to === '' ? message : { messages: [{ payload: message }] }),
    })
    return `${answer.status} ${await answer.text()}`
  }
  return { app, post }
}

test('A header of Millrace that the intake does not know is refused, with those that it knows.', async (t) => {
  const { app, post } = await open(t)
  for (const to of ['', '/batch'] as const) {
    assert.match(
      await post(to, { 'Millrace-Delay': '5' }),
      /^400 .*BAD_HEADER.*unknown header millrace-delay; expected one of millrace-delay-ms, millrace-priority, millrace-dedupe-key/,
    )
  }
  assert.equal((await app.admin.stats(events)).depth, 0)
})

test('What concerns one message is refused as a header of a batch.', async (t) => {
  const { app, post } = await open(t)
  for (const [name, instead] of [
    ['Millrace-Delay-Ms', 'give each message its delayMs'],
    ['Millrace-Priority', 'send such messages one by one'],
    ['Millrace-Dedupe-Key', 'send such messages one by one'],
  ] as const) {
    const refused = await post('/batch', { [name]: '5' })
    assert.match(refused, /^400 .*BAD_HEADER/)
    assert.ok(
      refused.includes(`a batch takes no ${name.toLowerCase()} header; ${instead}`),
      refused,
    )
  }
  assert.equal((await app.admin.stats(events)).depth, 0)
})

test('What a target of Millrace sends may go to an intake.', async (t) => {
  const { app, post } = await open(t)
  const headers = { 'Millrace-Message-Id': 'm-1', 'Millrace-Attempt': '2' }
  assert.match(await post('', headers), /^202 /)
  assert.match(await post('/batch', headers), /^202 /)
  assert.equal((await app.admin.stats(events)).depth, 2)
})
