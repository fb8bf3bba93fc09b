import type { NatsConnection } from '@nats-io/transport-node'
import type { Logger } from '../../model/logger.ts'

/** What becomes of the connection while we use it. */
export interface Connection {
  /** Calls back each time the connection is there again; the result ends that. */
  onReconnect(run: () => void): () => void
  /** Sentences for `health()`. */
  readonly problems: () => readonly string[]
}

export function watchConnection(nc: NatsConnection, logger: Logger): Connection {
  const waiting = new Set<() => void>()
  let away = false
  const watch = async (): Promise<void> => {
    for await (const status of nc.status()) {
      if (status.type === 'disconnect') {
        away = true
        logger.warn('the connection to NATS is lost; the client reconnects by itself', {})
      } else if (status.type === 'reconnect') {
        away = false
        logger.info('the connection to NATS is there again', {})
        for (const run of [...waiting]) run()
      } else if (status.type === 'error') {
        logger.warn('NATS says that something is wrong', { error: status.error })
      }
    }
  }
  watch().catch((error: unknown) => {
    logger.warn('the connection to NATS is not watched any more', { error })
  })
  return {
    onReconnect(run) {
      waiting.add(run)
      return () => waiting.delete(run)
    },
    problems() {
      if (nc.isClosed()) return ['nats: the connection is closed']
      return away ? ['nats: no connection; the client tries again all the time'] : []
    },
  }
}
