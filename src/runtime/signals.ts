import type { Logger } from '../model/logger.ts'
import type { CloseOptions } from './app.ts'

const SIGNALS = ['SIGTERM', 'SIGINT'] as const

/** First signal: drain. Second: abort at once. Answers how to stop listening. */
export function onSignals(
  close: (options?: CloseOptions) => Promise<void>,
  logger: Logger,
): () => void {
  let seen = 0
  const listener = (signal: NodeJS.Signals): void => {
    seen++
    logger.info(seen === 1 ? `${signal}: draining` : `${signal}: aborting what still runs`)
    void close(seen === 1 ? {} : { timeoutMs: 0 })
  }
  for (const signal of SIGNALS) process.on(signal, listener)
  return () => {
    for (const signal of SIGNALS) process.off(signal, listener)
  }
}
