import { appendFileSync } from 'node:fs'
import { postgresOutbox, sqliteOutbox } from 'millrace/outbox'
import type { Clock } from '../../src/model/clock.ts'
import { startRelay } from '../../src/outbox/relay.ts'
import { outboxContext } from './outbox-subjects.ts'

/**
 * A relay in a process of its own: `node outbox-relay-process.ts sqlite FILE BROKER DEATH` or
 * `… postgres URL SCHEMA BROKER DEATH`. The broker is a file with one line for each message that it took; it refuses
 * one in thirty. After DEATH messages the process kills itself, when the broker has the message and the outbox does not
 * know it. Time runs ten times faster, so that a claim of a dead relay ends soon.
 */
const [kind = '', where = '', ...rest] = process.argv.slice(2)
const SPEED = 10
const clock: Clock = {
  now: () => Date.now() * SPEED,
  after: (ms, run) => {
    const timer = setTimeout(run, ms / SPEED)
    return () => clearTimeout(timer)
  },
}
const broker = rest.at(-2) ?? ''
const death = Number(rest.at(-1))
let taken = 0
const connector =
  kind === 'sqlite'
    ? sqliteOutbox({ file: where })
    : postgresOutbox({ url: where, schema: rest[0] ?? '' })
const outbox = await connector.connect(outboxContext(kind === 'sqlite' ? clock : undefined))
startRelay({
  outbox,
  publish: async (rows) =>
    rows.map(({ envelope: { id } }) => {
      if (Math.random() < 1 / 30) {
        return { ok: false, fault: { code: 'unavailable', retryable: true, outcome: 'notApplied' } }
      }
      appendFileSync(broker, `${id}\n`)
      taken += 1
      if (taken === death) process.kill(process.pid, 'SIGKILL')
      return { ok: true, id, duplicate: false }
    }),
  clock,
  random: Math.random,
  logger: outboxContext().logger,
  batch: 20,
})
