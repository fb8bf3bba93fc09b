import type { QueueStats } from '../admin/admin.ts'
import { pause, systemClock } from '../model/clock.ts'
import { MillraceError } from '../model/errors.ts'
import { problems } from '../model/problems.ts'
import type { App } from '../runtime/app.ts'
import type { VirtualClock } from './virtual-clock.ts'

export interface SettledOptions {
  /** The most virtual time that may pass, in ms. Default 2,592,000,000 (30 days). */
  readonly maxMs?: number
  /**
   * How long a handler that is in the middle of something real (a socket, a file, a timer of its
   * own) is waited for before time moves on, in real ms. Default 50.
   */
  readonly realWaitMs?: number
}

const MAX_MS = 30 * 24 * 3_600_000
const REAL_WAIT_MS = 50
/**
 * Ready messages that nobody took for so long will never be taken: workers take what they can at
 * once.
 */
const NOBODY_CAME_MS = 600_000

export interface SettledSubject<Tx> {
  readonly app: App<Tx>
  readonly clock: VirtualClock
  readonly transport: { nextDueAt(): number | undefined }
}

/** Moves time until all queues of the app are empty, dead letters aside. */
export async function settled<Tx>(
  subject: SettledSubject<Tx>,
  options: SettledOptions = {},
): Promise<void> {
  const { app, clock } = subject
  const { maxMs, realWaitMs } = checked(options)
  const endAt = clock.now() + maxMs
  let idleSince = clock.now()
  for (;;) {
    await clock.advance(0)
    const stats = await waiting(app)
    if (stats.length === 0 && (await isStill(app, clock))) return
    if (stats.some(({ inFlight }) => (inFlight ?? 0) > 0)) {
      idleSince = clock.now()
      if (await somethingRealEnded(app, realWaitMs)) continue
    }
    if (stats.some(({ scheduled }) => (scheduled ?? 0) > 0)) idleSince = clock.now()
    const dueAt = nextAt(subject, stats)
    if (dueAt === undefined || clock.now() - idleSince > NOBODY_CAME_MS) {
      throw unsettled('nothing receives it any more', stats)
    }
    if (dueAt > endAt) throw unsettled(`${maxMs} ms of virtual time have passed`, stats)
    await clock.advance(Math.max(0, dueAt - clock.now()))
  }
}

function checked(options: SettledOptions): Required<SettledOptions> {
  const found = problems('settled')
  found.knownKeys(options, ['maxMs', 'realWaitMs'])
  const bounds = { min: 0, max: Number.MAX_SAFE_INTEGER, integer: false }
  const settings = {
    maxMs: found.number('maxMs', options.maxMs, { ...bounds, default: MAX_MS }),
    realWaitMs: found.number('realWaitMs', options.realWaitMs, {
      ...bounds,
      default: REAL_WAIT_MS,
    }),
  }
  found.throwIfAny()
  return settings
}

/**
 * While everything is scheduled for later, nothing is worth a look before the first of it falls
 * due.
 */
function nextAt<Tx>(
  { clock, transport }: SettledSubject<Tx>,
  stats: readonly QueueStats[],
): number | undefined {
  const idle = stats.every(({ depth, inFlight }) => (depth ?? 0) + (inFlight ?? 0) === 0)
  return idle ? (transport.nextDueAt() ?? clock.nextDueAt()) : clock.nextDueAt()
}

/**
 * Empty twice, with everything done in between that the last message set in motion (`onDeadLetter`,
 * for one).
 */
async function isStill<Tx>(app: App<Tx>, clock: VirtualClock): Promise<boolean> {
  await clock.advance(0)
  return (await waiting(app)).length === 0
}

async function waiting<Tx>(app: App<Tx>): Promise<readonly QueueStats[]> {
  const all = await Promise.all(app.queues.map((queue) => app.admin.stats(queue)))
  return all.filter(
    ({ depth, scheduled, inFlight }) => (depth ?? 0) + (scheduled ?? 0) + (inFlight ?? 0) > 0,
  )
}

/**
 * Handlers may wait for real things, which virtual time would overtake: they get a moment of real
 * time first.
 */
async function somethingRealEnded<Tx>(app: App<Tx>, realWaitMs: number): Promise<boolean> {
  const real = systemClock()
  const before = ends(app)
  const endAt = real.now() + realWaitMs
  while (real.now() < endAt) {
    await pause(real, 1)
    if (ends(app) !== before) return true
  }
  return false
}

function ends<Tx>(app: App<Tx>): number {
  const counters = Object.values(app.counters())
  return counters.reduce((sum, one) => sum + one.acked + one.released + one.dead + one.lost, 0)
}

function unsettled(why: string, stats: readonly QueueStats[]): MillraceError {
  const left = stats.map(
    ({ queue, depth, scheduled, inFlight, paused }) =>
      `"${queue}" has ${depth} ready, ${scheduled} scheduled, ${inFlight} in flight` +
      (paused ? ', and is paused' : ''),
  )
  return new MillraceError(
    'MILLRACE_NOT_SETTLED',
    `settled() gave up because ${why}: ${left.join('; ')}; ` +
      'has every queue a handler, and does each handler end?',
    { fields: { queues: stats.map(({ queue }) => queue) } },
  )
}
