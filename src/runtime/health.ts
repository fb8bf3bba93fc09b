import { MAKE_AGAIN } from '../model/backend-error.ts'
import type { Clock } from '../model/clock.ts'
import { messageOfError } from '../model/describe-error.ts'
import type { Health } from './app.ts'
import { bounded } from './bounded.ts'
import type { HeldLine } from './held-line.ts'
import type { Lifecycle } from './lifecycle.ts'
import { problemsOf } from './own-problems.ts'
import type { Parts } from './parts.ts'
import type { AnyQueue } from './queue.ts'
import type { Worker } from './worker.ts'

export interface HealthSources<Tx> {
  readonly parts: Parts<Tx>
  readonly held: HeldLine
  readonly workers: ReadonlyMap<string, Worker>
  readonly life: Lifecycle
  readonly clock: Clock
  readonly queue: AnyQueue | undefined
}

/** A backend that needs longer than this for one small question is no backend to work with. */
const PROBE_MS = 2_000
const RELAY_SILENT_MS = 60_000

/** Asks everything that must work, not whether the process exists. */
export async function healthOf<Tx>(sources: HealthSources<Tx>): Promise<Health> {
  const { workers, life, clock } = sources
  const reasons = [...workers.values()].flatMap((worker) => worker.problems())
  if (life.closing()) reasons.push('the app is closing')
  const failure = life.startFailure()
  if (failure !== undefined) {
    reasons.push(`start failed (${messageOfError(failure)}); call start() again`)
  }
  const relay = life.relay()
  if (relay !== undefined && clock.now() - relay.lastPassAt > RELAY_SILENT_MS) {
    reasons.push(
      `the outbox relay has not got through since ${new Date(relay.lastPassAt).toISOString()}`,
    )
  }
  reasons.push(...problemsOf(sources.parts), ...sources.held.problems())
  const unreachable = await probe(sources)
  if (unreachable !== undefined) reasons.push(unreachable)
  return { ok: reasons.length === 0, reasons }
}

async function probe<Tx>(sources: HealthSources<Tx>): Promise<string | undefined> {
  const { transport } = sources.parts
  const { browse } = transport
  if (browse === undefined || sources.queue === undefined) return undefined
  let why: string | undefined
  const { name } = sources.queue
  const asked = browse.gauge(name).catch((error: unknown) => {
    const said = messageOfError(error)
    why =
      transport.diagnose(error).code === 'notFound'
        ? `queue "${name}" is not there any more at ${transport.name} (${said}), or not all of it; ${MAKE_AGAIN}`
        : `transport ${transport.name} does not answer (${said})`
  })
  const inTime = await bounded(sources.clock, PROBE_MS, asked)
  return inTime ? why : `transport ${transport.name} did not answer within ${PROBE_MS} ms`
}
