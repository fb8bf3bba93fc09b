import type { QueueSpec, Topology } from '../../src/transport/transport.ts'
import type { MortalTop } from './bare-harness.ts'

const { signal } = new AbortController()

/**
 * A connection on layers that is told of a queue when it is first asked about it. Of an app each connection knows all queues; but layers
 * poll for each queue that they know, and the queues of a kit's other tests, hundreds, are none of its business.
 */
export function learning(top: MortalTop, known: ReadonlyMap<string, QueueSpec>): MortalTop {
  const told = new Map<unknown, Promise<void>>()
  const ensure: Topology['ensure'] = async (specs, signal) => {
    const telling = top.topology.ensure(specs, signal)
    for (const { name } of specs) told.set(name, telling)
    await telling
  }
  const learn = async (name: unknown): Promise<void> => {
    const spec = typeof name === 'string' ? known.get(name) : undefined
    if (spec !== undefined) await (told.get(name) ?? ensure([spec], signal))
  }
  const knowing =
    <Given extends readonly unknown[], Answer>(act: (...given: Given) => Promise<Answer>) =>
    async (...given: Given): Promise<Answer> => {
      await learn(given[0])
      return act(...given)
    }
  const part = <Part extends object>(of: Part): Part =>
    new Proxy(of, {
      get: (target, name, receiver) => {
        const act: unknown = Reflect.get(target, name, receiver)
        if (typeof act !== 'function') return act
        return knowing(
          async (...given: readonly unknown[]): Promise<unknown> => act.apply(target, given),
        )
      },
    })
  const { browse, shelf, shed, haltedKeys, topology } = top
  return {
    ...top,
    topology: { ...topology, ensure },
    send: knowing(top.send),
    subscribe: knowing(top.subscribe),
    ...(browse && { browse: part(browse) }),
    ...(shelf && { shelf: part(shelf) }),
    ...(shed && { shed: knowing(shed) }),
    ...(haltedKeys && { haltedKeys: part(haltedKeys) }),
  }
}
