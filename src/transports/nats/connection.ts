import type { Msg, NatsConnection, RequestOptions } from '@nats-io/transport-node'
import type { Clock } from '../../model/clock.ts'
import type { Logger } from '../../model/logger.ts'

/** What becomes of the connection while we use it. */
export interface Connection {
  /**
   * A request whose answer cannot come any more, because the connection over which it went is lost, rejects at that moment and
   * not at its limit in time. One that is made while there is no connection waits for the next one: the client would drop it.
   */
  request(subject: string, payload: Uint8Array | string, options: RequestOptions): Promise<Msg>
  /** The same for other calls of the client: rejects when the connection is lost, before their own limit in time. */
  tracked<T>(call: Promise<T>): Promise<T>
  /** Calls back each time the connection is there again; the result ends that. */
  onReconnect(run: () => void): () => void
  /** Sentences for `health()`. */
  readonly problems: () => readonly string[]
}

export function watchConnection(nc: NatsConnection, clock: Clock, logger: Logger): Connection {
  const waiting = new Set<() => void>()
  const asked = new Set<(reason: Error) => void>()
  let away = false
  const lose = (): void => {
    away = true
    for (const reject of asked) reject(new ConnectionLostError())
    asked.clear()
  }
  const watch = async (): Promise<void> => {
    for await (const status of nc.status()) {
      if (status.type === 'disconnect') {
        lose()
        logger.warn('the connection to NATS is lost; the client reconnects by itself', {})
      } else if (status.type === 'reconnect') {
        away = false
        logger.info('the connection to NATS is there again', {})
        for (const run of [...waiting]) run()
      } else if (status.type === 'error') {
        logger.warn('NATS says that something is wrong', { error: status.error })
      }
    }
    lose()
    // Nothing comes any more; who waits is told by the client that the connection is closed.
    for (const run of [...waiting]) run()
  }
  watch().catch((error: unknown) => {
    logger.warn('the connection to NATS is not watched any more', { error })
  })
  const onReconnect: Connection['onReconnect'] = (run) => {
    waiting.add(run)
    return () => waiting.delete(run)
  }
  const back = (ms: number): Promise<void> =>
    new Promise((resolve, reject) => {
      const ended = onReconnect(() => {
        ended()
        cancel()
        resolve()
      })
      const cancel = clock.after(ms, () => {
        ended()
        reject(new NoConnectionError())
      })
    })
  const tracked = async <T>(call: Promise<T>): Promise<T> => {
    const { promise, resolve, reject } = Promise.withResolvers<T>()
    asked.add(reject)
    call.then(resolve, reject)
    try {
      return await promise
    } finally {
      asked.delete(reject)
    }
  }
  return {
    tracked,
    async request(subject, payload, options) {
      if (away && !nc.isClosed()) await back(options.timeout)
      return await tracked(nc.request(subject, payload, options))
    },
    onReconnect,
    problems() {
      if (nc.isClosed()) return ['nats: the connection is closed']
      return away ? ['nats: no connection; the client tries again all the time'] : []
    },
  }
}

/** What was asked may have happened. */
export class ConnectionLostError extends Error {
  constructor() {
    super('the connection to NATS was lost before the answer came')
    this.name = 'ConnectionLostError'
  }
}

/** Nothing was asked. */
export class NoConnectionError extends Error {
  constructor() {
    super('there is no connection to NATS, and none came in time')
    this.name = 'NoConnectionError'
  }
}
