import { type Clock, pause } from '../model/clock.ts'
import type { Logger } from '../model/logger.ts'
import { isAlarming } from './backoff.ts'
import type { Outbox, Publish, RelayFailure } from './outbox.ts'

/** Takes rows from an outbox to the transport until it is closed, whatever happens on the way. */
export interface Relay {
  /** Epoch ms of the last pass that got through, with or without rows. */
  readonly lastPassAt: number
  /** Looks now instead of at the next poll. */
  poke(): void
  /** Waits for the pass in hand, up to 5 s. Idempotent. */
  close(): Promise<void>
}

export interface RelayOptions {
  readonly outbox: Outbox
  readonly publish: Publish
  readonly clock: Clock
  readonly random: () => number
  readonly logger: Logger
  /** How often an empty outbox is looked into, in ms. Default 200. */
  readonly pollMs?: number
  /** Most rows of one pass. Default 200. */
  readonly batch?: number
}

const POLL_MS = 200
const BATCH = 200
const CLOSE_MS = 5_000
const PAUSE_MAX_MS = 30_000

export function startRelay(options: RelayOptions): Relay {
  const { outbox, publish, clock, random, logger, pollMs = POLL_MS, batch = BATCH } = options
  const closing = new AbortController()
  let lastPassAt = clock.now()
  let errors = 0
  let poked = false
  let waiting: AbortController | undefined

  const wait = async (ms: number): Promise<void> => {
    if (poked || closing.signal.aborted) return
    waiting = new AbortController()
    // A little shorter or longer, so that several relays do not look at the same moments.
    await pause(clock, ms * (0.9 + random() / 5), waiting.signal)
    waiting = undefined
  }
  const wake = (): void => waiting?.abort()

  /** Answers how long to wait before the next one. */
  const pass = async (): Promise<number> => {
    try {
      const { published, failed } = await outbox.relay(batch, publish)
      lastPassAt = clock.now()
      errors = 0
      for (const failure of failed) report(logger, outbox, failure)
      return published > 0 ? 0 : pollMs
    } catch (cause) {
      if (closing.signal.aborted) return 0
      errors += 1
      reportError(logger, outbox, errors, cause)
      // What was published and could not be removed is published again, so each round waits longer.
      return Math.min(PAUSE_MAX_MS, pollMs * 2 ** Math.min(errors, 16))
    }
  }

  const run = async (): Promise<void> => {
    while (!closing.signal.aborted) {
      poked = false
      const waitMs = await pass()
      if (waitMs > 0) await wait(waitMs)
    }
  }

  const poke = (): void => {
    // While the database fails the pauses must grow, however much is being sent.
    if (errors > 0) return
    poked = true
    wake()
  }
  const stopListening = outbox.onAdded?.(poke)
  const running = run()
  let closed: Promise<void> | undefined

  return {
    get lastPassAt() {
      return lastPassAt
    },
    poke,
    close: () => {
      closed ??= end()
      return closed
    },
  }

  async function end(): Promise<void> {
    stopListening?.()
    closing.abort()
    wake()
    const over = new AbortController()
    await Promise.race([running.finally(() => over.abort()), pause(clock, CLOSE_MS, over.signal)])
  }
}

function report(logger: Logger, outbox: Outbox, failure: RelayFailure): void {
  const { queue, messageId, tries, retryInMs, fault } = failure
  const fields = {
    outbox: outbox.name,
    queue,
    messageId,
    tries,
    code: fault.code,
    cause: fault.cause,
  }
  const what = `outbox ${outbox.name}: message ${messageId} for queue "${queue}" was not taken (${fault.code})`
  const next = `tried ${tries} times, next in ${retryInMs} ms`
  // Nobody changes what a refused message says, so its first refusal is worth a person's attention.
  const refused = !fault.retryable && tries === 1
  if (refused || isAlarming(tries))
    logger.error(`${what}; ${next}; it stays until it is taken`, fields)
  else logger.debug(`${what}; ${next}`, fields)
}

function reportError(logger: Logger, outbox: Outbox, errors: number, cause: unknown): void {
  const fields = { outbox: outbox.name, errors, cause }
  const what = `outbox ${outbox.name}: the relay could not read or write its table`
  if (errors === 1) logger.warn(`${what}; it tries again`, fields)
  else if (isAlarming(errors))
    logger.error(`${what}, ${errors} times in a row; it goes on trying`, fields)
}
