import type { Harness } from 'millrace/conformance'
import { memoryStore } from 'millrace/store'
import { byOrder } from '../../src/layers/by-order.ts'
import { copies } from '../../src/layers/copies.ts'
import { crashMarks } from '../../src/layers/crash-marks.ts'
import { deadLetters } from '../../src/layers/dead-letters.ts'
import { delays } from '../../src/layers/delays.ts'
import { drawMishap, faulty } from '../../src/layers/faulty.ts'
import { hold } from '../../src/layers/hold.ts'
import { journals } from '../../src/layers/journals.ts'
import { pauses } from '../../src/layers/pauses.ts'
import { priorities } from '../../src/layers/priorities.ts'
import { rememberedKeys } from '../../src/layers/remembered-keys.ts'
import { settleEach } from '../../src/layers/settle-each.ts'
import type { Clock } from '../../src/model/clock.ts'
import { silentLogger } from '../../src/model/logger.ts'
import type { Store } from '../../src/store/store.ts'
import { seededRandom } from '../../src/testing/seeded-random.ts'
import type { Layer, Transport } from '../../src/transport/transport.ts'
import { connectStore } from '../stores/store-harness.ts'
import { bareHarness } from './bare-harness.ts'
import { faultyStore } from './faulty-store.ts'
import { logHarness } from './log-harness.ts'
import { type MemoryLog, memoryLog } from './memory-log.ts'
import { mortalStore } from './mortal.ts'

/** How likely each kind of trouble is, at each place and call. */
export interface Rates {
  readonly receives: number
  readonly others: number
}

/** Layers, innermost first, with trouble below, between and above all of them, and in their store. */
export interface Troubled {
  readonly name: string
  readonly keepsOrder: boolean
  readonly harness: (seed: number, rates: Rates) => Harness
}

export const troubled: readonly Troubled[] = [
  { name: 'a broker', keepsOrder: false, harness: onBroker },
  { name: 'a broker in order', keepsOrder: true, harness: onBrokerInOrder },
  { name: 'a log, parked', keepsOrder: false, harness: (seed, rates) => onLog(seed, rates, false) },
  { name: 'a log, held', keepsOrder: true, harness: (seed, rates) => onLog(seed, rates, true) },
]

function onBroker(seed: number, rates: Rates): Harness {
  const site = siteOf(`layers ${seed}`, rates)
  return bareHarness({
    ...{ name: `faults, seed ${seed}`, more: () => ({ priorities: 1 }), levels: 3 },
    on: async (broker, clock) => {
      const parts = await site(clock)
      const { store, random, stack, die } = parts
      const top = stack(
        broker,
        (inner) => priorities(inner, { most: 3, clock }),
        (inner) => delays(inner, { store, clock, logger: silentLogger }),
        copies,
        (inner) => crashMarks(inner, { store, clock, random, copied: true }),
        ...above(parts),
      )
      return { ...top, die }
    },
  })
}

function onBrokerInOrder(seed: number, rates: Rates): Harness {
  const site = siteOf(`layers in order ${seed}`, rates)
  return bareHarness({
    name: `faults in order, seed ${seed}`,
    more: () => ({ order: 'perKey', release: 'delayed' }),
    on: async (broker, clock) => {
      const parts = await site(clock)
      return { ...parts.stack(broker, ...inOrder(parts)), die: parts.die }
    },
  })
}

/** Its queues belong to one of two logs, of which the other one does not know them. */
function onLog(seed: number, rates: Rates, ordered: boolean): Harness {
  const site = siteOf(`layers of a log ${seed}`, rates)
  let other: MemoryLog | undefined
  return logHarness({
    ...{ name: `faults of a log, seed ${seed}`, ordered },
    on: async (log, clock) => {
      other ??= memoryLog(clock, 1)
      const parts = await site(clock)
      const { store, random, stack, die } = parts
      const [held, parked] = ordered ? [log, other.connect()] : [other.connect(), log]
      const one = stack(
        parked,
        settleEach,
        (inner) => delays(inner, { store, clock, logger: silentLogger }),
        copies,
        (inner) => crashMarks(inner, { store, clock, random, copied: true }),
        ...above(parts),
      )
      const two = stack(held, settleEach, (inner) => hold(inner, clock), ...inOrder(parts))
      const both = stack(one, (inner) => byOrder(inner, two))
      return { ...both, traits: ordered ? two.traits : one.traits, die }
    },
  })
}

interface Parts {
  readonly store: Store
  readonly clock: Clock
  readonly random: () => number
  readonly stack: (broker: Transport, ...layers: readonly Layer[]) => Transport
  readonly die: () => void
}

/** What stands on each connection of one run. */
function siteOf(name: string, { receives, others }: Rates): (clock: Clock) => Promise<Parts> {
  const random = seededRandom(name)
  const connector = memoryStore()
  return async (clock) => {
    const { thing, die } = mortalStore(await connectStore(connector, clock))
    const store = faultyStore(thing, random, others)
    const trouble = faulty({
      random,
      clock,
      plan: ({ act }) => {
        const rate = act === 'receive' ? receives : others
        const rates = { rejected: rate, refused: rate, unanswered: rate, slow: rate / 3 }
        return drawMishap({ random, rates })
      },
      slowMs: 20,
    })
    const knowing = (transport: Transport): Transport => ({
      ...transport,
      diagnose: (error) => {
        const fault = transport.diagnose(error)
        return fault.code === 'unknown' ? store.diagnose(error) : fault
      },
    })
    const stack: Parts['stack'] = (broker, ...layers) =>
      layers.reduce((top, layer) => trouble(knowing(layer(top))), trouble(broker))
    return { store, clock, random, stack, die }
  }
}

/** Where a failed message keeps its place. */
function inOrder(parts: Parts): readonly Layer[] {
  const { store, clock, random } = parts
  return [
    (inner) => journals(inner, store),
    (inner) => crashMarks(inner, { store, clock, random, copied: false }),
    ...above(parts),
  ]
}

function above({ store, clock, random }: Parts): readonly Layer[] {
  return [
    (inner) => deadLetters(inner, { store, clock, random }),
    (inner) => rememberedKeys(inner, store, clock),
    (inner) => pauses(inner, store, clock),
  ]
}
