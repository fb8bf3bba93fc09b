import { isObject, read } from '../../model/probe.ts'
import type { Broker } from './broker.ts'
import type { Ladder } from './ladder.ts'
import { landingKey } from './ladder.ts'
import { askManagement } from './management.ts'
import type { Place } from './names.ts'

/** Where an exchange sends what. */
interface Binding {
  readonly from: string
  readonly to: string
  readonly kind: 'queue' | 'exchange'
  readonly key: string
}

/** The bindings that delays need between their own queues and exchanges. */
function bindingsOf({ levels, landing: _, stranded }: Ladder): readonly Binding[] {
  return [
    ...levels.flatMap(({ exchange, queue, next, waits, passes }): readonly Binding[] => [
      { from: exchange, to: queue, kind: 'queue', key: waits },
      { from: exchange, to: next, kind: 'exchange', key: passes },
    ]),
    { from: stranded, to: stranded, kind: 'queue', key: '' },
  ]
}

/** Of what delays need, the bindings that are not there, a text each. Only the management API tells them: none without it. */
export async function missingHops(
  broker: Broker,
  ladder: Ladder,
  signal: AbortSignal,
): Promise<readonly string[]> {
  return missing(broker, bindingsOf(ladder), signal)
}

/** The same for the ends of the delays: one for each queue that is sent to. */
export async function missingEnds(
  broker: Broker,
  { landing }: Ladder,
  places: readonly Place[],
  signal: AbortSignal,
): Promise<readonly string[]> {
  const ends = places.map(
    ({ queue }): Binding => ({ from: landing, to: queue, kind: 'queue', key: landingKey(queue) }),
  )
  return missing(broker, ends, signal)
}

async function missing(
  broker: Broker,
  wanted: readonly Binding[],
  signal: AbortSignal,
): Promise<readonly string[]> {
  const { managementUrl } = broker.options
  if (managementUrl === undefined) return []
  const found: string[] = []
  for (const [from, some] of Map.groupBy(wanted, (one) => one.from)) {
    const there = await boundTo(broker, managementUrl, from, signal)
    for (const { to, kind, key } of some) {
      if (there.some((one) => one.to === to && one.kind === kind && one.key === key)) continue
      found.push(`binding of ${kind} "${to}" to exchange "${from}" by "${key}"`)
    }
  }
  return found
}

/**
 * Whether a message that is sent to this place may come to its queue. An exchange that feeds another exchange may do it by that.
 * True where nobody tells.
 */
export async function isFed(
  broker: Broker,
  { queue, exchange, routingKey }: Place,
  signal: AbortSignal,
): Promise<boolean> {
  const { managementUrl } = broker.options
  if (managementUrl === undefined || exchange === '') return true
  const there = await boundTo(broker, managementUrl, exchange, signal)
  const path = `exchanges/{vhost}/${encodeURIComponent(exchange)}`
  const said = await askManagement(broker, managementUrl, path, `exchange "${exchange}"`, signal)
  const type = read(said, 'type')
  return there.some(({ to, kind, key }) => {
    if (kind === 'exchange') return true
    if (to !== queue) return false
    if (type === 'direct') return key === routingKey
    return type !== 'topic' || takes(key.split('.'), routingKey.split('.'))
  })
}

async function boundTo(
  broker: Broker,
  managementUrl: string,
  exchange: string,
  signal: AbortSignal,
): Promise<readonly Binding[]> {
  const path = `exchanges/{vhost}/${encodeURIComponent(exchange)}/bindings/source`
  const said = await askManagement(broker, managementUrl, path, `exchange "${exchange}"`, signal)
  if (!Array.isArray(said)) return []
  return said.filter(isObject).map((one) => ({
    from: exchange,
    to: String(read(one, 'destination')),
    kind: read(one, 'destination_type') === 'exchange' ? 'exchange' : 'queue',
    key: String(read(one, 'routing_key')),
  }))
}

/** Whether a topic exchange's pattern takes a routing key; a star stands for one word, a hash for any number. */
function takes(pattern: readonly string[], words: readonly string[]): boolean {
  const [first, ...rest] = pattern
  if (first === undefined) return words.length === 0
  if (first === '#') {
    return takes(rest, words) || (words.length > 0 && takes(pattern, words.slice(1)))
  }
  return words.length > 0 && (first === '*' || first === words[0]) && takes(rest, words.slice(1))
}
