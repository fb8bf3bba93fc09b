import type { Clock } from '../model/clock.ts'
import type { Logger } from '../model/logger.ts'
import { type BreakerState, CLOSED } from './breaker.ts'
import { type BreakerFleet, KEPT_MAX } from './breaker-fleet.ts'

export interface BreakerNewsOptions {
  readonly queue: string
  readonly logger: Logger
  readonly clock: Clock
}

/** Many runs that were under way are told the same. */
const GATE_NEWS_MS = 5_000
/** That there are too many is no news each second. */
const TOO_MANY_AGAIN_MS = 600_000

/** Tells what a person should know of a change in what is known of the breakers. */
export function breakerNews(
  options: BreakerNewsOptions,
): (before: BreakerFleet, after: BreakerFleet) => void {
  const { queue, logger, clock } = options
  let saidAt = Number.NEGATIVE_INFINITY
  return (before, after) => {
    tellChanges(options, before, after)
    if (after.size < KEPT_MAX || clock.now() - saidAt < TOO_MANY_AGAIN_MS) return
    saidAt = clock.now()
    logger.warn(
      `queue "${queue}": ${KEPT_MAX} downstreams fail or ask for a pause, and no more are remembered: of the others it is forgotten, and their messages run until it is seen again`,
      { queue, downstreams: after.size },
    )
  }
}

function tellChanges(options: BreakerNewsOptions, before: BreakerFleet, after: BreakerFleet): void {
  for (const downstream of new Set([...before.keys(), ...after.keys()])) {
    const [was, is] = [before, after].map((fleet) => fleet.get(downstream) ?? CLOSED)
    if (was !== undefined && is !== undefined) tell(options, downstream, was, is)
  }
}

function tell(
  { queue, logger }: BreakerNewsOptions,
  downstream: string,
  before: BreakerState,
  after: BreakerState,
): void {
  const where = `queue "${queue}": breaker of ${JSON.stringify(downstream)}`
  const fields = { queue, downstream }
  if (before.held !== after.held) {
    const how = after.held === 'none' ? 'decides by itself again' : `is held ${after.held} by hand`
    logger.warn(`${where} ${how}`, fields)
  }
  const { gate } = after
  if (gate !== undefined && gate.until > (before.gate?.until ?? 0) + GATE_NEWS_MS) {
    const until = new Date(gate.until).toISOString()
    logger.warn(
      `queue "${queue}": ${JSON.stringify(downstream)} asks for a pause; its messages wait, uncounted, until ${until}, then few go at first`,
      fields,
    )
  }
  if (before.phase === after.phase) return
  if (after.phase === 'open') {
    const until = new Date(after.until).toISOString()
    logger.warn(
      `${where} is open: ${after.failed} of ${after.runs} runs failed; its messages wait, uncounted, and one is tried at ${until}`,
      fields,
    )
  } else if (after.phase === 'closed') logger.warn(`${where} is closed: its messages run`, fields)
  else logger.debug(`${where} is half-open: one message is tried`, fields)
}
