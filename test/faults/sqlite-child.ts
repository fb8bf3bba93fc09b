// A process of its own for the fault tests: `node sqlite-child.ts <act> <file> [number]`. One line of output per event.
import { writeSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { pause, systemClock } from '../../src/model/clock.ts'
import { newId } from '../../src/model/ids.ts'
import { connect } from './sqlite-connect.ts'

const [act = '', file = '', number = '0'] = process.argv.slice(2)
const clock = systemClock()
const signal = new AbortController().signal

/** Straight to the file descriptor: what was written is out even when the process is killed in the next moment. */
function say(line: string): void {
  writeSync(1, `${line}\n`)
}

function envelopes(count: number) {
  const body = new TextEncoder().encode('{}')
  return Array.from({ length: count }, () => ({
    id: newId(clock, Math.random),
    body,
    headers: {},
    priority: 0,
  }))
}

/** Migrates and says which database it found. */
async function migrate(): Promise<void> {
  const transport = await connect(file, clock)
  say(String(transport.databaseId))
  await transport.close()
}

/** Sends batches of seven for ever and says which were confirmed. */
async function send(): Promise<void> {
  const transport = await connect(file, clock)
  for (;;) {
    const batch = envelopes(7)
    await transport.send('q', batch, { signal, atomic: true })
    say(batch.map((envelope) => envelope.id).join(' '))
  }
}

/** Sends messages one by one and acks whatever it gets, until the parent closes its input. */
async function work(): Promise<void> {
  const transport = await connect(file, clock)
  const subscription = await transport.subscribe('q', {
    group: 'g',
    leaseMs: 30_000,
    maxInFlight: 100,
  })
  const stop = new AbortController()
  process.stdin.once('end', () => stop.abort()).resume()
  const consume = async (): Promise<void> => {
    while (!stop.signal.aborted) {
      const got = await subscription.receive({ max: 10, waitMs: 60_000, signal: stop.signal })
      const outcomes = await subscription.settle(got.map((delivery) => ({ as: 'acked', delivery })))
      for (const [at, outcome] of outcomes.entries()) {
        say(`${outcome.ok ? 'acked' : 'lost'} ${got[at]?.envelope.id}`)
      }
    }
  }
  const consumers = [consume(), consume()]
  for (const envelope of envelopes(Number(number))) {
    await transport.send('q', [envelope], { signal })
    say(`sent ${envelope.id}`)
  }
  await Promise.all(consumers)
  await transport.close()
}

/** Holds the write lock for as long as it is told. */
async function hold(): Promise<void> {
  const handle = new DatabaseSync(file)
  handle.exec('BEGIN IMMEDIATE')
  say('held')
  await pause(clock, Number(number))
  handle.exec('COMMIT')
  handle.close()
}

const acts: Readonly<Record<string, () => Promise<void>>> = { migrate, send, work, hold }
await acts[act]?.()
