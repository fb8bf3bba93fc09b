import type { Sent } from '../../model/delivery.ts'
import { MillraceError } from '../../model/errors.ts'
import type { Fault } from '../../model/fault.ts'
import { read } from '../../model/probe.ts'
import { refused, stored } from '../../transport/outcomes.ts'
import type { AmqpConfirmChannel, AmqpProperties } from './amqp-shapes.ts'
import type { Broker } from './broker.ts'
import { rabbitFault } from './fault.ts'
import { headerCarrier } from './header-carrier.ts'
import { withinLimit } from './limit.ts'
import { messageOf } from './link.ts'

export interface Publication {
  readonly exchange: string
  readonly routingKey: string
  readonly content: Buffer
  readonly properties: Omit<AmqpProperties, 'headers'>
  readonly headers: Readonly<Record<string, string>>
}

/** Publishes with confirms and `mandatory`: stored means that the broker said so and that it knew where to. */
export interface Publisher {
  /** One outcome per item; rejects when the broker is away before anything was written. */
  publish(batch: readonly Publication[], signal: AbortSignal): Promise<readonly Sent[]>
}

/** What waits for its confirm at once; beyond it the broker is too slow for us. */
const OUTSTANDING_MAX = 20_000

/** What one call of publish waits for. */
interface Waiting {
  /** The first outcome of an item stays. */
  settle(at: number, outcome: Sent): void
  settleRest(fault: Fault): void
  readonly settled: Promise<readonly Sent[]>
}

export function openPublisher(broker: Broker): Publisher {
  const { publishing, options, clock } = broker
  const calls = new Set<Waiting>()
  const written = headerCarrier()
  let outstanding = 0
  /** Came back, and their confirms follow. */
  const unroutable = new Map<string, number>()
  let opening: Promise<AmqpConfirmChannel> | undefined

  publishing.onBlocked((why) => settleAll(calls, blockedFault('unknown', why)))

  const channel = (): Promise<AmqpConfirmChannel> => {
    opening ??= openChannel().catch((error: unknown) => {
      opening = undefined
      throw error
    })
    return opening
  }

  const openChannel = async (): Promise<AmqpConfirmChannel> => {
    const opened = await publishing.current().createConfirmChannel()
    let why: unknown
    opened.on('error', (error) => {
      why = error
    })
    opened.on('close', () => {
      opening = undefined
      unroutable.clear()
      settleAll(calls, goneFault(why))
    })
    opened.on('return', (message) => {
      const key = keyOf(message)
      unroutable.set(key, 1 + (unroutable.get(key) ?? 0))
    })
    return opened
  }

  const publishOne = (
    to: AmqpConfirmChannel,
    { exchange, routingKey, content, properties, headers }: Publication,
    call: Waiting,
    at: number,
  ): void => {
    const { messageId } = properties
    const confirmed = (error: unknown): void => {
      const wasReturned =
        unroutable.size > 0 && takeOne(unroutable, `${exchange} ${routingKey} ${messageId}`)
      if (error) call.settle(at, notConfirmed(error))
      else call.settle(at, wasReturned ? refused('notFound') : stored(messageId))
    }
    try {
      const options = { ...properties, headers: written(headers) }
      to.publish(exchange, routingKey, content, options, confirmed)
    } catch (error) {
      call.settle(at, notWritten(error))
    }
  }

  return {
    async publish(batch, signal) {
      signal.throwIfAborted()
      if (batch.length === 0) return []
      const blocked = publishing.blocked()
      if (blocked !== undefined || outstanding + batch.length > OUTSTANDING_MAX) {
        return batch.map(() => failed(blockedFault('notApplied', blocked)))
      }
      const to = await withinLimit(broker, 'opening a channel', channel(), signal)
      const call = waitingFor(batch.length)
      calls.add(call)
      outstanding += batch.length
      for (const [at, publication] of batch.entries()) publishOne(to, publication, call, at)
      const giveUp = (): void => call.settleRest(unansweredFault(options.timeoutMs))
      const cancel = clock.after(options.timeoutMs, () => {
        giveUp()
        publishing.drop(`no confirm within ${options.timeoutMs} ms`)
      })
      signal.addEventListener('abort', giveUp, { once: true })
      try {
        return await call.settled
      } finally {
        cancel()
        signal.removeEventListener('abort', giveUp)
        calls.delete(call)
        outstanding -= batch.length
      }
    },
  }
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

function failed(fault: Fault): Sent {
  return { ok: false, fault }
}

function keyOf(message: unknown): string {
  const fields = read(message, 'fields')
  const id = read(read(message, 'properties'), 'messageId')
  return `${read(fields, 'exchange')} ${read(fields, 'routingKey')} ${id}`
}

/** @param why undefined: not an alarm, but more unconfirmed messages than we let wait */
function blockedFault(outcome: Fault['outcome'], why: string | undefined): Fault {
  const what =
    why === undefined
      ? `${OUTSTANDING_MAX} messages wait for its confirms; send more slowly`
      : `it takes none now (${why}); it will when its alarm ends, so free memory or disk there`
  return { code: 'throttled', retryable: true, outcome, cause: new Error(`rabbitmq: ${what}`) }
}

function goneFault(cause: unknown): Fault {
  return { code: 'unavailable', retryable: true, outcome: 'unknown', cause }
}

function unansweredFault(timeoutMs: number): Fault {
  const message = `rabbitmq: no confirm came (limit ${timeoutMs} ms)`
  return goneFault(new MillraceError('MILLRACE_UNAVAILABLE', message, { retryable: true }))
}

/** The broker said no (a queue that is full and rejects), or the channel went away. */
function notConfirmed(error: unknown): Sent {
  if (messageOf(error) === 'message nacked') {
    return failed({ code: 'full', retryable: true, outcome: 'unknown', cause: error })
  }
  return failed(goneFault(error))
}

/** amqplib refuses headers of more than 64 KiB with a RangeError, before it writes anything. */
function notWritten(error: unknown): Sent {
  if (error instanceof RangeError) return refused('tooLarge', { cause: error })
  const fault = rabbitFault(error)
  if (fault.code === 'unavailable') return failed({ ...fault, outcome: 'notApplied' })
  return refused('invalid', { cause: error })
}
