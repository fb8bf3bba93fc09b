import type { Transport } from '../transport/transport.ts'
import type { Harness } from './harness.ts'
import type { Subject } from './promise.ts'
import { families } from './promises/index.ts'
import { type RegisterOptions, registerPromises } from './register.ts'
import { withScope } from './scope.ts'

export interface ConformanceOptions extends RegisterOptions {
  readonly harness: Harness
}

/**
 * Registers a test for every promise that the transport's traits and optional members make. Await
 * it at the top of a test file: it connects once to read the traits.
 *
 * @example
 * import { test, after } from 'node:test'
 * after(() => harness.dispose())
 * await conformance({ test, harness })
 */
export async function conformance(options: ConformanceOptions): Promise<void> {
  const { harness, depth = 'quick' } = options
  const transport = await harness.connect()
  const subject: Subject = { traits: transport.traits, transport, harness }
  const known = registerPromises(options, {
    backend: harness.name,
    families,
    subject,
    about: { traits: transport.traits, members: membersOf(transport) },
    keep: (promised, random) => withScope({ harness, depth, random }, promised.keep),
  })
  await transport.close()
  known.refuseStale()
}

function membersOf({ transaction, browse, shelf, letters }: Transport): readonly string[] {
  const of = (part: string, members: object = {}): readonly string[] =>
    Object.entries(members).flatMap(([name, member]) =>
      member === undefined ? [] : [`${part}.${name}`],
    )
  const own = transaction === undefined ? [] : ['transaction']
  return [...own, ...of('browse', browse), ...of('shelf', shelf), ...of('letters', letters)]
}
