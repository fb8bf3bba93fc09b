import { silentLogger } from '../model/logger.ts'
import { problems, show } from '../model/problems.ts'
import type { App } from '../runtime/app.ts'
import type { MillraceOptions } from '../runtime/create.ts'
import { createMillrace } from '../runtime/create-millrace.ts'
import { type MemoryConnector, memory } from '../transports/memory/index.ts'
import { checkMishaps, type Mishaps, troubled } from './mishaps.ts'
import { seededRandom } from './seeded-random.ts'
import { type SettledOptions, settled } from './settled.ts'
import { type VirtualClock, virtualClock } from './virtual-clock.ts'

export interface TestAppOptions<Tx = unknown>
  extends Omit<MillraceOptions<Tx>, 'transport' | 'clock' | 'signals' | 'migrate'> {
  /**
   * Default: a new `memory()`. Give your own to share it with `memoryInbox({ transport })` or a
   * second app.
   */
  readonly transport?: MemoryConnector
  /** Default: a new one. Two apps on one transport need the same clock. */
  readonly clock?: VirtualClock
  /**
   * Seed of the jitter when no `random` is given; the same seed gives the same run. Default
   * `millrace`.
   */
  readonly seed?: string
  /**
   * What goes wrong between the app and its backend, as often as `rates` say or as `plan` decides: calls fail, or are done and their
   * answers lost. Nothing of it loses a message; handlers run again for it, and one whose handing out is lost three times is dead, as one that
   * killed three workers. Default: nothing.
   */
  readonly mishaps?: Mishaps
}

/** An app in memory whose time the test moves. */
export interface TestApp<Tx = unknown> extends App<Tx> {
  readonly clock: VirtualClock
  readonly transport: MemoryConnector
  /**
   * Starts the app when it is not started yet, then moves time until nothing is ready, scheduled or
   * in flight in any of its queues: retries, delays and everything that handlers sent on the way
   * are done. Dead letters may remain.
   * @throws MILLRACE_NOT_SETTLED when `maxMs` have passed, or nothing can happen any more, with what is still waiting.
   */
  settled(options?: SettledOptions): Promise<void>
}

/**
 * Runs your queues and handlers in memory, without waiting: an hour of retries takes milliseconds.
 *
 * @example
 * const app = await testApp({ queues: [welcome] })
 * app.work(welcome, handler)
 * await app.send(welcome, { to: 'ada@example.org' })
 * await app.settled()
 */
export async function testApp<Tx = unknown>(options: TestAppOptions<Tx>): Promise<TestApp<Tx>> {
  const {
    clock = virtualClock(),
    transport = memory(),
    seed = 'millrace',
    random = seededRandom(seed),
    mishaps,
    ...rest
  } = checked(options)
  const app = await createMillrace<Tx>({
    logger: silentLogger,
    ...rest,
    transport: mishaps ? troubled(transport, { ...mishaps, random, clock }) : transport,
    random,
    clock,
  })
  return {
    ...app,
    clock,
    transport,
    // A send that is tried again waits for the next try.
    ...(mishaps && {
      send: (...given) => onVirtualTime(clock, app.send(...given)),
      sendBatch: (...given) => onVirtualTime(clock, app.sendBatch(...given)),
    }),
    close: (closeOptions) => onVirtualTime(clock, app.close(closeOptions)),
    async settled(settledOptions) {
      await app.start()
      await settled({ app, clock, transport }, settledOptions)
    },
  }
}

/** Everything else is checked by `createMillrace`. */
function checked<Tx>(options: TestAppOptions<Tx>): TestAppOptions<Tx> {
  const found = problems('testApp')
  found.knownKeys(options, Object.keys(Object(options)))
  if (options.seed !== undefined && typeof options.seed !== 'string') {
    found.add(`seed: expected a string, got ${show(options.seed)}`)
  }
  if (options.mishaps !== undefined) checkMishaps(options.mishaps, found)
  found.throwIfAny()
  return options
}

/** Nobody else moves the time while this goes on. */
async function onVirtualTime<T>(clock: VirtualClock, call: Promise<T>): Promise<T> {
  let isOver = false
  const end = (): void => {
    isOver = true
  }
  call.then(end, end)
  await clock.advance(0)
  while (!isOver) {
    const dueAt = clock.nextDueAt()
    await clock.advance(dueAt === undefined ? 0 : Math.max(0, dueAt - clock.now()))
  }
  return await call
}
