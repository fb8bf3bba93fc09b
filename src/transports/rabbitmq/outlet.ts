import type { Sent } from '../../model/delivery.ts'
import type { Fault } from '../../model/fault.ts'
import { read } from '../../model/probe.ts'
import { refused, stored } from '../../transport/outcomes.ts'
import type { AmqpProperties } from './amqp-shapes.ts'
import type { Broker } from './broker.ts'
import { rabbitFault } from './fault.ts'
import type { headerCarrier } from './header-carrier.ts'
import { messageOf } from './link.ts'

export interface Publication {
  readonly exchange: string
  readonly routingKey: string
  readonly content: Buffer
  readonly properties: Omit<AmqpProperties, 'headers'>
  readonly headers: Readonly<Record<string, string>>
}

/** A channel with confirms, and the calls that wait for them. */
export interface Outlet {
  /** Epoch ms. */
  readonly openedAt: number
  /** The broker has refused a message on it. */
  readonly hasRefused: boolean
  publish(batch: readonly Publication[]): Call
  /** All that wait have this outcome. */
  settleAll(fault: Fault): void
  /** Closes it when nothing waits any more. Nothing is published on it afterwards. */
  retire(): void
}

/** What one call of publish waits for. */
export interface Call {
  /** Of what has none yet. */
  settleRest(fault: Fault): void
  readonly settled: Promise<readonly Sent[]>
  /** Whoever waited has gone on. */
  end(): void
}

interface Waiting extends Omit<Call, 'end'> {
  /** The first outcome of an item stays. */
  settle(at: number, outcome: Sent): void
}

export interface OutletParts {
  readonly broker: Pick<Broker, 'publishing' | 'clock'>
  readonly written: ReturnType<typeof headerCarrier>
  /** Nothing can be published on it any more; may be told again. */
  readonly onClosed: (outlet: Outlet) => void
}

export async function openOutlet({ broker, written, onClosed }: OutletParts): Promise<Outlet> {
  const { publishing, clock } = broker
  const calls = new Set<Waiting>()
  /** Came back, and their confirms follow. */
  const unroutable = new Map<string, number>()
  const channel = await publishing.current().createConfirmChannel()
  let why: unknown
  let hasRefused = false
  let isRetired = false

  channel.on('error', (error) => {
    why = error
  })
  channel.on('close', () => {
    onClosed(outlet)
    settleAll(calls, goneFault(why))
  })
  channel.on('return', (message) => {
    const key = keyOf(message)
    unroutable.set(key, 1 + (unroutable.get(key) ?? 0))
  })

  const publishOne = (publication: Publication, call: Waiting, at: number): void => {
    const { exchange, routingKey, content, properties, headers } = publication
    const { messageId } = properties
    const confirmed = (error: unknown): void => {
      const wasReturned =
        unroutable.size > 0 && takeOne(unroutable, `${exchange} ${routingKey} ${messageId}`)
      if (error) {
        hasRefused ||= isRefusal(error)
        call.settle(at, notConfirmed(error))
      } else call.settle(at, wasReturned ? refused('notFound') : stored(messageId))
    }
    try {
      const options = { ...properties, headers: written(headers) }
      channel.publish(exchange, routingKey, content, options, confirmed)
    } catch (error) {
      const outcome = notWritten(error)
      call.settle(at, outcome)
      // It may have closed in the turn in which it opened, before anybody listened.
      if (!outcome.ok && outcome.fault.code === 'unavailable') onClosed(outlet)
    }
  }

  const closeIfOver = (): void => {
    if (isRetired && calls.size === 0) channel.close().catch(() => undefined)
  }

  const outlet: Outlet = {
    openedAt: clock.now(),
    get hasRefused() {
      return hasRefused
    },
    publish(batch) {
      const call = waitingFor(batch.length)
      calls.add(call)
      for (const [at, publication] of batch.entries()) publishOne(publication, call, at)
      const end = (): void => {
        calls.delete(call)
        closeIfOver()
      }
      return { ...call, end }
    },
    settleAll: (fault) => settleAll(calls, fault),
    retire() {
      isRetired = true
      closeIfOver()
    },
  }
  return outlet
}

function waitingFor(count: number): Waiting {
  const { promise, resolve } = Promise.withResolvers<readonly Sent[]>()
  const outcomes = new Array<Sent | undefined>(count).fill(undefined)
  let left = count
  const settle: Waiting['settle'] = (at, outcome) => {
    if (outcomes[at] !== undefined) return
    outcomes[at] = outcome
    left -= 1
    if (left === 0) resolve(outcomes.map((one) => one ?? refused('unknown')))
  }
  return {
    settle,
    settleRest(fault) {
      for (let at = 0; at < count; at += 1) settle(at, failed(fault))
    },
    settled: promise,
  }
}

function settleAll(calls: ReadonlySet<Waiting>, fault: Fault): void {
  for (const one of [...calls]) one.settleRest(fault)
}

function takeOne(counts: Map<string, number>, key: string): boolean {
  const count = counts.get(key)
  if (count === undefined) return false
  if (count === 1) counts.delete(key)
  else counts.set(key, count - 1)
  return true
}

export function failed(fault: Fault): Sent {
  return { ok: false, fault }
}

function keyOf(message: unknown): string {
  const fields = read(message, 'fields')
  const id = read(read(message, 'properties'), 'messageId')
  return `${read(fields, 'exchange')} ${read(fields, 'routingKey')} ${id}`
}

export function goneFault(cause: unknown): Fault {
  return { code: 'unavailable', retryable: true, outcome: 'unknown', cause }
}

/** The broker said no (a queue that is full and rejects), or the channel went away. */
function notConfirmed(error: unknown): Sent {
  if (isRefusal(error)) {
    return failed({ code: 'full', retryable: true, outcome: 'unknown', cause: error })
  }
  return failed(goneFault(error))
}

function isRefusal(error: unknown): boolean {
  return messageOf(error) === 'message nacked'
}

/** amqplib refuses headers of more than 64 KiB with a RangeError, before it writes anything. */
function notWritten(error: unknown): Sent {
  if (error instanceof RangeError) return refused('tooLarge', { cause: error })
  const fault = rabbitFault(error)
  if (fault.code === 'unavailable') return failed({ ...fault, outcome: 'notApplied' })
  return refused('invalid', { cause: error })
}
