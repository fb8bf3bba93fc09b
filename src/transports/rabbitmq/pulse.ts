import { type Clock, pause } from '../../model/clock.ts'
import { readInteger } from '../../model/probe.ts'
import { type SignsOfLife, signsOfLife } from '../../transport/signs-of-life.ts'
import type { AmqpChannel, AmqpConnection } from './amqp-shapes.ts'

/**
 * Whether one connection is surely still known to the broker. Heartbeats of the broker do not tell: it sends them to a process
 * that is stopped, too, and they are read when that wakes up. So the broker is asked something, and its answer tells that it
 * had heard us.
 */
export interface Pulse extends Pick<SignsOfLife, 'isOver'> {
  stop(): void
}

export interface PulseParts {
  /** Resolves when the broker has answered. */
  readonly ask: () => Promise<unknown>
  readonly clock: Clock
  readonly heartbeatMs: number
  /** See `SignsOfLife.isOver`. */
  readonly onOver: (silentMs: number) => void
}

/**
 * Heartbeats that the broker waits for. It looks once for each heartbeat whether something has come, and gives up when two looks
 * in a row find nothing: between two and three heartbeats after the last byte (rabbit_heartbeat.erl of 3.10.8).
 */
const PATIENCE = 2

export function startPulse({ ask, clock, heartbeatMs, onOver }: PulseParts): Pulse {
  const stopped = new AbortController()
  const signs = signsOfLife({ clock, patienceMs: heartbeatMs * PATIENCE, onOver })
  const everyMs = heartbeatMs / 2
  /** From question to question: an answer that lay there while the process stood still is followed at once by the next one. */
  const untilNext = (askedAt: number): number =>
    Math.min(everyMs, Math.max(0, askedAt + everyMs - clock.now()))
  const run = async (): Promise<void> => {
    while (!stopped.signal.aborted) {
      const askedAt = clock.now()
      // Where it fails the connection ends, which others hear, or the next question has a channel of its own.
      await ask().then(
        () => signs.answered(askedAt),
        () => {},
      )
      await pause(clock, untilNext(askedAt), stopped.signal)
    }
  }
  void run()
  return { isOver: signs.isOver, stop: () => stopped.abort() }
}

/** Of a connection, as it was agreed on; undefined when there is none, or the client does not say. */
export function heartbeatMsOf({
  connection,
}: Pick<AmqpConnection, 'connection'>): number | undefined {
  const seconds = readInteger(connection, 'heartbeat')
  return seconds === undefined || seconds <= 0 ? undefined : seconds * 1_000
}

/** A question that the broker answers and that changes nothing, on a channel that nobody else waits on. */
export function questionOn(connection: AmqpConnection): () => Promise<unknown> {
  let channel: AmqpChannel | undefined
  const open = async (): Promise<AmqpChannel> => {
    const opened = await connection.createChannel()
    opened.on('error', () => {})
    return opened
  }
  return async () => {
    try {
      channel ??= await open()
      await channel.prefetch(1)
    } catch (error) {
      channel = undefined
      throw error
    }
  }
}
