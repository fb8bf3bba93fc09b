import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { silentLogger } from 'millrace'
import { type BreakerPass, type Breakers, breakers } from '../../src/flow/breakers.ts'
import { systemClock } from '../../src/model/clock.ts'
import { connectStore } from '../stores/store-harness.ts'
import { flowStores, freshQueue } from './flow-stores.ts'

const PROCESSES = 5
const DEADLINE_MS = 20_000
const settings = {
  failureShare: 0.5,
  minimum: PROCESSES * 2,
  windowMs: 600_000,
  openMs: 100,
  openMaxMs: 100,
  gate: undefined,
}

/** Asks again and again, as messages do, until all answer so. */
async function until(what: string, isSo: () => Promise<boolean>): Promise<void> {
  const end = Date.now() + DEADLINE_MS
  while (!(await isSo())) {
    assert.ok(Date.now() < end, what)
    await wait(20)
  }
}

function isPass(found: ReturnType<Breakers['admit']>): found is BreakerPass {
  return 'downstream' in found
}

for (const [name, connector] of flowStores()) {
  test(`Five processes open one breaker together, and one of them sends the probe (${name}).`, async (t) => {
    const queue = freshQueue()
    const open = async (): Promise<Breakers> => {
      const store = await connectStore(connector)
      t.after(() => store.close())
      return breakers({
        queue,
        settings,
        clock: systemClock(),
        random: Math.random,
        logger: silentLogger,
        store,
      })
    }
    const fleet = await Promise.all(Array.from({ length: PROCESSES }, open))
    t.after(() => {
      for (const one of fleet) one.close()
    })
    // Two failures each: no process sees enough by itself.
    for (const one of fleet) {
      for (let i = 0; i < 2; i++) {
        const pass = one.admit('api')
        assert.ok(isPass(pass))
        one.concluded(pass, 'failed')
      }
    }
    const probes: { readonly by: Breakers; readonly pass: BreakerPass }[] = []
    const ask = async (): Promise<readonly boolean[]> => {
      await Promise.all(fleet.map((by) => by.ready()))
      return fleet.map((by) => {
        const found = by.admit('api')
        if (isPass(found) && found.probe !== undefined) probes.push({ by, pass: found })
        return isPass(found)
      })
    }
    await until('all wait', async () => (await ask()).every((runs) => !runs))
    await until('somebody probes', async () => (await ask()).some(Boolean) || probes.length > 0)
    // Everybody goes on asking while the probe is under way: nobody else may.
    for (let i = 0; i < 50; i++) {
      await ask()
      await wait(10)
    }
    assert.equal(probes.length, 1)
    const [probe] = probes
    assert.ok(probe !== undefined)
    probe.by.concluded(probe.pass, 'ok')
    await until('all run', async () => (await ask()).every(Boolean))
    assert.equal(probes.length, 1)
  })

  test(`A pause that one process is asked for is one for all five, who then share what may go (${name}).`, async (t) => {
    const queue = freshQueue()
    const gate = { startPerSecond: 5, stepMs: 600_000 }
    const fleet = await Promise.all(
      Array.from({ length: PROCESSES }, async () => {
        const store = await connectStore(connector)
        t.after(() => store.close())
        return breakers({
          queue,
          settings: { ...settings, gate },
          clock: systemClock(),
          random: Math.random,
          logger: silentLogger,
          store,
        })
      }),
    )
    const ask = async (): Promise<readonly boolean[]> => {
      await Promise.all(fleet.map((by) => by.ready()))
      const found = await Promise.all(fleet.map((by) => by.admit('api')))
      return found.map((one) => 'downstream' in one)
    }
    const [first] = fleet
    const pass = await first?.admit('api')
    assert.ok(first !== undefined && pass !== undefined && 'downstream' in pass)
    const told = Date.now()
    first.throttled(pass, 4_000)
    first.concluded(pass, 'ok')
    await until('all wait', async () => (await ask()).every((runs) => !runs))
    assert.ok(Date.now() - told < 4_000, 'they know of it before it is over')
    let gone = 0
    while (Date.now() - told < 6_000) {
      const now = (await ask()).filter(Boolean).length
      if (Date.now() - told < 3_900) assert.equal(now, 0)
      gone += now
      await wait(20)
    }
    // Two seconds of five each, and one that the bucket had at first; a clock of the server's may differ a little.
    assert.ok(gone >= 4 && gone <= 14, `${gone} went`)
  })
}
