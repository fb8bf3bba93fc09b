import { MillraceError } from '../model/errors.ts'
import type { Transport } from '../transport/transport.ts'

/** What the backend said of a queue. */
export interface TotalReading {
  /** When it was asked. */
  readonly at: number
  /** How long the answer took. */
  readonly tookMs: number
  /** Ready, scheduled and in flight, as far as the backend tells: RabbitMQ knows the ready ones alone. */
  readonly total: number
  /** What this process had sent by then, since its start. */
  readonly sentBefore: number
}

/** How much a queue holds, as its backend counts; asked once for all who want to know. */
export interface QueueTotal {
  /** The newest answer, however old. */
  readonly last: TotalReading | undefined
  /** True from the question to the answer. */
  readonly isReading: boolean
  /** This process sent some. */
  sent(messages: number): void
  /**
   * Asks; who asks meanwhile gets the same answer.
   * @throws MILLRACE_UNAVAILABLE when the backend does not say
   */
  read(): Promise<TotalReading>
}

export interface QueueTotalOptions {
  readonly queue: string
  readonly transport: Transport
  readonly now: () => number
}

export function queueTotal(options: QueueTotalOptions): QueueTotal {
  const { now } = options
  let sent = 0
  let last: TotalReading | undefined
  let reading: Promise<TotalReading> | undefined

  const ask = async (): Promise<TotalReading> => {
    const [at, sentBefore] = [now(), sent]
    try {
      const total = await totalOf(options)
      last = { at, tookMs: Math.max(0, now() - at), total, sentBefore }
      return last
    } finally {
      reading = undefined
    }
  }

  return {
    get last() {
      return last
    },
    get isReading() {
      return reading !== undefined
    },
    sent: (messages) => {
      sent += messages
    },
    read: () => {
      reading ??= ask()
      return reading
    },
  }
}

async function totalOf({ queue, transport }: QueueTotalOptions): Promise<number> {
  try {
    const gauge = await transport.browse?.gauge(queue)
    return (gauge?.depth ?? 0) + (gauge?.scheduled ?? 0) + (gauge?.inFlight ?? 0)
  } catch (cause) {
    if (cause instanceof MillraceError) throw cause
    throw new MillraceError(
      'MILLRACE_UNAVAILABLE',
      `queue "${queue}": the backend did not say how full the queue is (${transport.diagnose(cause).code}); nothing was stored, try again`,
      { cause, retryable: true, fields: { queue } },
    )
  }
}
