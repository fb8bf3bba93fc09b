import type { Delivery } from '../../model/delivery.ts'
import type { Bell } from '../../transport/bell.ts'
import type { Ends } from '../../transport/ends.ts'
import type { ReceiveOptions } from '../../transport/transport.ts'
import type { Polls } from './polls.ts'
import { dropExpired, type Holding } from './settle.ts'
import { LONG_POLL_MAX_S, standardTraits } from './traits.ts'
import type { Tray } from './tray.ts'

export interface Receiving {
  readonly holding: Holding
  readonly tray: Tray
  readonly polls: Polls
  readonly bell: Bell<0>
  readonly ends: Ends
}

/** Between two looks when SQS answers sooner than it was asked to, as it does when too much is in flight. */
const PAUSE_MS = 1_000

export async function receiving(
  parts: Receiving,
  options: ReceiveOptions,
): Promise<readonly Delivery[]> {
  const stopped = parts.tray.asked()
  try {
    return await looking(parts, options)
  } finally {
    stopped()
  }
}

async function looking(
  { holding, polls, bell, ends }: Receiving,
  options: ReceiveOptions,
): Promise<readonly Delivery[]> {
  const { clock } = holding.store
  const max = Math.min(standardTraits.limits.receiveBatch, Math.max(1, options.max))
  const endAt = clock.now() + options.waitMs
  let asked = false
  while (!ends.reached()) {
    const since = bell.rings(0)
    dropExpired(holding)
    const taken = holding.hand.take(max)
    if (taken.length > 0) return taken.map(({ delivery }) => delivery)
    const startedAt = clock.now()
    const leftMs = endAt - startedAt
    if (asked && leftMs <= 0) break
    // Whole seconds are all that SQS can wait.
    const waitS = Math.min(LONG_POLL_MAX_S, Math.floor(Math.max(0, leftMs) / 1_000))
    await firstOf(polls.next(max, waitS), bell, since, ends)
    asked = true
    const pauseMs = Math.min(PAUSE_MS, endAt - clock.now())
    const early = clock.now() - startedAt < Math.min(PAUSE_MS, waitS * 500)
    if (pauseMs > 0 && (waitS === 0 || early)) await bell.wait(0, since, pauseMs, ends.signal())
  }
  return []
}

/** The poll, or sooner: a ring, or the end of the receive. */
async function firstOf(
  poll: Promise<void>,
  bell: Bell<0>,
  since: number,
  ends: Ends,
): Promise<void> {
  const done = new AbortController()
  const signal = AbortSignal.any([ends.signal(), done.signal])
  try {
    await Promise.race([poll, bell.wait(0, since, Number.MAX_SAFE_INTEGER, signal)])
  } finally {
    done.abort()
  }
}
