import { closedError } from '../model/closed-error.ts'
import type { Delivery, Released, Sent, Settled, Settlement } from '../model/delivery.ts'
import { settled } from '../model/delivery.ts'
import type { Envelope } from '../model/envelope.ts'
import { lost } from '../transport/outcomes.ts'
import { givenBack, isPlain } from '../transport/settling.ts'
import type { Traits } from '../transport/traits.ts'
import type { Subscription, Transport } from '../transport/transport.ts'
import { sendInParts } from './in-parts.ts'
import { nextCopy, readPast } from './past.ts'
import { stillOurs } from './still-ours.ts'

/**
 * Keeps the history of attempts where the backend cannot: a failed attempt goes back as a confirmed copy with the new history
 * in its headers, and only then the first one is acked. A crash between the two doubles the message and never loses it.
 */
export function copies(inner: Transport): Transport {
  const closing = new AbortController()
  return {
    ...inner,
    traits: {
      ...inner.traits,
      release: 'delayed',
      uncountedRelease: true,
      keepsHistory: true,
      releaseMayDouble: true,
    },
    async subscribe(queue, options) {
      const subscription = await inner.subscribe(queue, options)
      return copyingSubscription(subscription, {
        copy: (batch) => sendInParts(inner, queue, batch, closing.signal),
        traits: inner.traits,
        leaseMs: options.leaseMs,
      })
    },
    close: () => {
      closing.abort(closedError(inner.name))
      return inner.close()
    },
  }
}

interface Copying {
  readonly copy: (batch: readonly Envelope[]) => Promise<readonly Sent[]>
  readonly traits: Traits
  readonly leaseMs: number
}

function copyingSubscription(
  inner: Subscription,
  { copy, traits, leaseMs }: Copying,
): Subscription {
  /** Copied and not yet acked: the caller settles again, and must not copy again. */
  const copied = new WeakSet<Delivery>()
  const inPlace = traits.uncountedRelease && traits.release !== 'none'

  const copyAll = async (batch: readonly Released[]): Promise<readonly Settled[]> => {
    const outcomes = new Map<Released, Settled>()
    const uncopied = batch.filter(({ delivery }) => !copied.has(delivery))
    const ours = await stillOurs(
      inner,
      uncopied.map(({ delivery }) => delivery),
      leaseMs,
    )
    const open = uncopied.filter(({ delivery }) => ours.has(delivery))
    for (const release of uncopied) {
      if (!ours.has(release.delivery)) outcomes.set(release, lost)
    }
    const sent = await copy(open.map(copyOf))
    for (const [i, release] of open.entries()) {
      const outcome = sent[i]
      if (outcome?.ok) copied.add(release.delivery)
      else if (outcome !== undefined) outcomes.set(release, { ok: false, fault: outcome.fault })
    }
    return batch.map((release) => outcomes.get(release) ?? settled)
  }

  return {
    ...inner,
    receive: async (options) => (await inner.receive(options)).map(readPast),
    settle: async (batch) => {
      const toCopy = batch.filter(
        (one): one is Released => one.as === 'released' && !(inPlace && isPlain(one)),
      )
      if (toCopy.length === 0) return inner.settle(batch)
      const copyOutcomes = await copyAll(toCopy)
      const failed = new Map<Settlement, Settled>()
      for (const [i, release] of toCopy.entries()) {
        const outcome = copyOutcomes[i]
        if (outcome !== undefined && !outcome.ok) failed.set(release, outcome)
      }
      const copies = new Set<Settlement>(toCopy)
      const rest = batch.filter((one) => !failed.has(one))
      const ended = await inner.settle(
        rest.map((one): Settlement => (copies.has(one) ? acked(one.delivery) : one)),
      )
      const outcomes = new Map(rest.map((one, i) => [one, ended[i]]))
      return batch.map((one) => failed.get(one) ?? outcomes.get(one) ?? lost)
    },
  }
}

function acked(delivery: Delivery): Settlement {
  return { as: 'acked', delivery }
}

function copyOf({ delivery, ...release }: Released): Envelope {
  const copy = nextCopy(delivery, givenBack(delivery, release, Number.POSITIVE_INFINITY))
  return release.delayMs > 0 ? { ...copy, delayMs: release.delayMs } : copy
}
