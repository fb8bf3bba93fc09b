import { type FaultyOptions, faulty, mishapNames } from '../layers/faulty.ts'
import { read } from '../model/probe.ts'
import type { Problems } from '../model/problems.ts'
import type { MemoryConnector } from '../transports/memory/index.ts'

/** What goes wrong between an app and its backend. */
export type Mishaps = Omit<FaultyOptions, 'random' | 'clock'>

const KNOWN: readonly string[] = ['rates', 'plan', 'slowMs', 'onMishap']
const RATE = { min: 0, max: 1, integer: false, default: 0 }
const SLOW = { min: 0, max: 86_400_000, integer: false, default: 0 }

export function checkMishaps(mishaps: unknown, found: Problems): void {
  found.knownKeys(mishaps, KNOWN, 'mishaps')
  found.optionalFunction('mishaps.plan', read(mishaps, 'plan'))
  found.optionalFunction('mishaps.onMishap', read(mishaps, 'onMishap'))
  found.number('mishaps.slowMs', read(mishaps, 'slowMs'), SLOW)
  const rates = read(mishaps, 'rates')
  if (rates === undefined) return
  found.knownKeys(rates, mishapNames, 'mishaps.rates')
  const each = mishapNames.map((name) =>
    found.number(`mishaps.rates.${name}`, read(rates, name), RATE),
  )
  const sum = each.reduce((all, rate) => all + rate, 0)
  if (sum > 1) found.add(`mishaps.rates: expected 1 together at most, got ${sum}`)
}

export function troubled(connector: MemoryConnector, options: FaultyOptions): MemoryConnector {
  const trouble = faulty(options)
  return { ...connector, connect: async (context) => trouble(await connector.connect(context)) }
}
