import { runsPerSecond } from '../flow/measure.ts'
import { type Recommendation, recommend } from '../flow/recommend.ts'
import { pause } from '../model/clock.ts'
import { type Problems, problems } from '../model/problems.ts'
import type { Gauge } from '../transport/transport.ts'
import type { QueueRef, ScaleOptions, ScaleView } from './admin.ts'
import { type AdminContext, browseOf } from './context.ts'

const DAY_MS = 86_400_000
/** Growth between two looks that are closer than this is chance. */
const LOOK_APART_MS = 1_000
const LOOKS_FOR_MS = 120_000
const LOOKS_MAX = 100

interface Look {
  readonly at: number
  /** Ready and in flight. */
  readonly there: number
}

/** How many workers each queue needs, from what it is now and what it was when somebody last asked. */
export function scaleDesk(
  context: AdminContext,
): (ref: QueueRef, options?: ScaleOptions) => Promise<ScaleView> {
  const { transport, clock, find } = context
  const looks = new Map<string, readonly Look[]>()

  const look = async (queue: string): Promise<Gauge> => {
    const gauge = await browseOf(transport).gauge(queue)
    const at = clock.now()
    const before = (looks.get(queue) ?? []).filter((one) => at - one.at <= LOOKS_FOR_MS)
    const there = gauge.depth === undefined ? undefined : gauge.depth + (gauge.inFlight ?? 0)
    if (there !== undefined) looks.set(queue, [...before, { at, there }].slice(-LOOKS_MAX))
    return gauge
  }

  /** Messages per second by which the queue has grown since the oldest look. */
  const growth = (queue: string): number => {
    const [first, ...rest] = looks.get(queue) ?? []
    const last = rest.at(-1)
    if (first === undefined || last === undefined || last.at - first.at < LOOK_APART_MS) return 0
    return ((last.there - first.there) * 1_000) / (last.at - first.at)
  }

  return async (ref, given = {}) => {
    const { name } = find(ref)
    const options = resolved(name, given, context.concurrencyOf(name))
    if (options.watchMs > 0) {
      await look(name)
      const { signal } = options
      await pause(
        clock,
        options.watchMs,
        AbortSignal.any([context.closed, ...(signal ? [signal] : [])]),
      )
      signal?.throwIfAborted()
      context.closed.throwIfAborted()
    }
    const gauge = await look(name)
    const measure = await context.measureOf(name)
    const perSecond = measure.fleet && runsPerSecond(measure.fleet, clock.now())
    const arrivalsPerSecond =
      options.arrivalsPerSecond ??
      (perSecond === undefined ? undefined : Math.max(0, perSecond + growth(name)))
    const handlerMs = options.handlerMs ?? (measure.fleet ?? measure.own)?.handlerMs
    const slotsMax = context.limitsOf(name)?.sharedMax
    const facts = { ...gauge, arrivalsPerSecond, handlerMs, slotsMax }
    return viewOf(name, facts, measuredIn(measure), recommend(facts, options))
  }
}

type Facts = Pick<ScaleView, 'arrivalsPerSecond' | 'handlerMs'> &
  Pick<Gauge, 'depth' | 'inFlight' | 'ageMs' | 'paused'>

function viewOf(
  queue: string,
  { depth, inFlight, ageMs, paused, arrivalsPerSecond, handlerMs }: Facts,
  measured: ScaleView['measuredIn'],
  recommendation: Recommendation,
): ScaleView {
  const numbers = {
    handlerMs: rounded(handlerMs),
    arrivalsPerSecond: rounded(arrivalsPerSecond),
  }
  const facts = { depth, inFlight, ageMs, paused, ...numbers }
  const slots = rounded(recommendation.slots)
  return { queue, ...recommendation, slots, ...facts, measuredIn: measured }
}

function measuredIn(
  measure: Awaited<ReturnType<AdminContext['measureOf']>>,
): ScaleView['measuredIn'] {
  if (measure.fleet !== undefined) return 'fleet'
  return measure.own === undefined ? 'nowhere' : 'process'
}

function rounded(n: number | undefined): number | undefined {
  return n && Math.round(n * 1_000) / 1_000
}

type Untold = 'handlerMs' | 'arrivalsPerSecond' | 'signal'
type Resolved = Required<Omit<ScaleOptions, Untold>> & Pick<ScaleOptions, Untold>

function resolved(queue: string, given: ScaleOptions, concurrency: number): Resolved {
  const found = problems(`scale of queue "${queue}"`, { queue })
  found.knownKeys(given, KEYS)
  found.optionalSignal('signal', given.signal)
  const min = found.number('min', given.min, { min: 0, max: 10_000, default: 0 })
  const options = {
    concurrency: found.number('concurrency', given.concurrency, {
      min: 1,
      max: 10_000,
      default: concurrency,
    }),
    clearWithinMs: found.number('clearWithinMs', given.clearWithinMs, {
      min: 1_000,
      max: DAY_MS,
      default: 60_000,
    }),
    utilisation: found.number('utilisation', given.utilisation, {
      min: 0.1,
      max: 1,
      default: 0.8,
      integer: false,
    }),
    min,
    max: found.number('max', given.max, { min: Math.max(1, min), max: 10_000, default: 10_000 }),
    watchMs: found.number('watchMs', given.watchMs, { min: 0, max: 60_000, default: 0 }),
    ...told('handlerMs', given.handlerMs, { min: 0, max: DAY_MS }, found),
    ...told('arrivalsPerSecond', given.arrivalsPerSecond, { min: 0, max: 1e9 }, found),
  }
  found.throwIfAny()
  return given.signal === undefined ? options : { ...options, signal: given.signal }
}

const KEYS = [
  'concurrency',
  'clearWithinMs',
  'utilisation',
  'min',
  'max',
  'watchMs',
  'handlerMs',
  'arrivalsPerSecond',
  'signal',
]

function told<Name extends 'handlerMs' | 'arrivalsPerSecond'>(
  name: Name,
  value: unknown,
  bounds: { readonly min: number; readonly max: number },
  found: Problems,
): { readonly [N in Name]?: number } {
  if (value === undefined) return {}
  const known = found.number(name, value, { ...bounds, integer: false })
  return { [name]: known } as { readonly [N in Name]?: number }
}
