import { type Clock, pause } from '../../model/clock.ts'
import { closedError } from '../../model/closed-error.ts'
import { MillraceError } from '../../model/errors.ts'
import type { Logger } from '../../model/logger.ts'
import { read } from '../../model/probe.ts'
import { redact } from '../../model/redact.ts'
import { openBell } from '../../transport/bell.ts'
import { alarm } from './alarm.ts'
import type { AmqpConnection } from './amqp-shapes.ts'
import { gatherWrites } from './gather-writes.ts'
import { endsWithin } from './limit.ts'
import { heartbeatMsOf, type Pulse, questionOn, startPulse } from './pulse.ts'

/** One connection that comes back by itself. Calls during an outage are told at once; nothing is tried again for them. */
export interface Link {
  /** @throws MILLRACE_UNAVAILABLE while the broker is away */
  current(): AmqpConnection
  /** Of the present connection; undefined where it has no heartbeat, or publishes. */
  pulse(): Pulse | undefined
  /** Resolves when there is a connection, or with undefined when the signal fires first. */
  up(signal: AbortSignal): Promise<AmqpConnection | undefined>
  /** Why the broker takes no messages now (its memory or disk alarm); undefined when it does. */
  blocked(): string | undefined
  onBlocked(hear: (why: string) => void): void
  /** Ends a connection that no longer answers; the next one is opened at once. */
  drop(why: string): void
  problem(): string | undefined
  close(): Promise<void>
}

export interface LinkParts {
  readonly purpose: 'publishing' | 'consuming'
  readonly open: () => Promise<AmqpConnection>
  readonly clock: Clock
  readonly random: () => number
  readonly logger: Logger
}

const BACKOFF_FIRST_MS = 50
const BACKOFF_MAX_MS = 2_000
const CLOSE_TIMEOUT_MS = 2_000

const WAIT_MS = 60_000

/** Opens the first connection; rejects when that fails. */
export async function openLink(parts: LinkParts): Promise<Link> {
  const { purpose, clock, random, logger } = parts
  const closing = new AbortController()
  const ups = openBell<'up'>(clock)
  const blocks = alarm(logger)
  let connection: AmqpConnection | undefined
  let away: Away | undefined
  let pulse: Pulse | undefined

  const dropFor = (dropped: AmqpConnection, why: string): void => {
    lost(dropped, why)
    destroy(dropped)
  }

  const adopt = (opened: AmqpConnection): void => {
    gatherWrites(opened)
    watch(opened, { onLost: (why) => lost(opened, why), onBlocked: blocks.tell })
    connection = opened
    if (purpose === 'consuming') pulse = pulseOf(parts, opened, (why) => dropFor(opened, why))
    ups.ring()
  }

  const lost = (ended: AmqpConnection, why: string): void => {
    if (connection !== ended) return
    connection = undefined
    pulse?.stop()
    blocks.forget()
    if (closing.signal.aborted) return
    away = { since: clock.now(), why }
    logger.warn(`rabbitmq: the ${purpose} connection was lost (${why}); connecting again`)
    void reconnect(away)
  }

  const reconnect = async (outage: Away): Promise<void> => {
    for (let backoffMs = BACKOFF_FIRST_MS; ; backoffMs = Math.min(BACKOFF_MAX_MS, backoffMs * 2)) {
      await pause(clock, backoffMs * (0.5 + random() / 2), closing.signal)
      if (closing.signal.aborted) return
      try {
        const opened = await parts.open()
        if (closing.signal.aborted) return destroy(opened)
        away = undefined
        const forMs = clock.now() - outage.since
        logger.info(`rabbitmq: the ${purpose} connection is back after ${forMs} ms`)
        return adopt(opened)
      } catch (error) {
        outage.why = messageOf(error)
      }
    }
  }

  adopt(await parts.open())
  return {
    current() {
      if (connection !== undefined) return connection
      if (closing.signal.aborted) throw closedError('the transport')
      throw awayError(purpose, away?.why ?? 'not connected')
    },
    pulse: () => (connection === undefined ? undefined : pulse),
    async up(signal) {
      while (connection === undefined && !signal.aborted && !closing.signal.aborted) {
        await ups.wait('up', ups.rings('up'), WAIT_MS, signal)
      }
      return connection
    },
    blocked: blocks.why,
    onBlocked: blocks.hear,
    drop(why) {
      if (connection !== undefined) dropFor(connection, why)
    },
    problem: () => problemOf(purpose, away, blocks.why()),
    async close() {
      if (closing.signal.aborted) return
      closing.abort()
      const last = connection
      connection = undefined
      pulse?.stop()
      ups.close()
      if (last === undefined) return
      await endsWithin(clock, CLOSE_TIMEOUT_MS, closeOf(last))
      destroy(last)
    },
  }
}

const NO_HEARTBEAT =
  'rabbitmq: the connection has no heartbeat: a process that was stopped cannot know that its messages are elsewhere, and may still commit their effects; leave "heartbeat=0" out of the url, or let connect ask for one'

function pulseOf(
  { clock, logger }: LinkParts,
  connection: AmqpConnection,
  drop: (why: string) => void,
): Pulse | undefined {
  const heartbeatMs = heartbeatMsOf(connection)
  if (heartbeatMs === undefined) {
    logger.warn(NO_HEARTBEAT)
    return undefined
  }
  const onOver = (ms: number): void =>
    drop(
      `the broker may have given it up: this process stood still, or nothing answered, for ${ms} ms`,
    )
  return startPulse({ ask: questionOn(connection), clock, heartbeatMs, onOver })
}

interface Away {
  readonly since: number
  why: string
}

interface Hearers {
  readonly onLost: (why: string) => void
  readonly onBlocked: (why: string | undefined) => void
}

function watch(connection: AmqpConnection, { onLost, onBlocked }: Hearers): void {
  let why = 'the broker closed it'
  connection.on('error', (error) => {
    why = messageOf(error)
  })
  connection.on('close', (error) => onLost(error === undefined ? why : messageOf(error)))
  connection.on('blocked', (reason) =>
    onBlocked(typeof reason === 'string' ? reason : 'no reason given'),
  )
  connection.on('unblocked', () => onBlocked(undefined))
}

function problemOf(
  purpose: string,
  away: Away | undefined,
  blocked: string | undefined,
): string | undefined {
  if (away !== undefined) {
    const since = new Date(away.since).toISOString()
    return `rabbitmq: no ${purpose} connection since ${since} (${away.why})`
  }
  return blocked === undefined ? undefined : `rabbitmq: the broker takes no messages (${blocked})`
}

export function awayError(purpose: string, why: string): MillraceError {
  return new MillraceError('MILLRACE_UNAVAILABLE', `rabbitmq: no ${purpose} connection (${why})`, {
    retryable: true,
  })
}

/** amqplib throws where a connection has ended already. */
async function closeOf(connection: AmqpConnection): Promise<void> {
  await connection.close()
}

/** amqplib has no call for it, its own close waits for an answer; it hears of an error of the socket, not of its end. */
function destroy(connection: AmqpConnection): void {
  const stream = read(connection.connection, 'stream')
  const end = read(stream, 'destroy')
  // One that nobody took up has no listener yet; without one amqplib throws the error, and its heartbeats keep the process up.
  connection.on('error', () => {})
  if (typeof end === 'function') end.call(stream, new Error('the connection was dropped'))
}

export function messageOf(error: unknown): string {
  return redact(error instanceof Error && error.message !== '' ? error.message : String(error))
}
