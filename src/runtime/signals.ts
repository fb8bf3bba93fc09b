import type { Clock } from '../model/clock.ts'
import type { Logger } from '../model/logger.ts'
import type { CloseOptions } from './app.ts'

const SIGNALS = ['SIGTERM', 'SIGINT'] as const
/** Under npm one Ctrl-C arrives twice, from the terminal and handed on by npm, within a few ms. */
const SAME_SIGNAL_MS = 100

/** First signal: drain. Second: abort at once. Answers how to stop listening. */
export function onSignals(
  close: (options?: CloseOptions) => Promise<void>,
  logger: Logger,
  clock: Clock,
): () => void {
  let firstAt: number | undefined
  const listener = (signal: NodeJS.Signals): void => {
    const isFirst = firstAt === undefined
    firstAt ??= clock.now()
    if (!isFirst && clock.now() - firstAt <= SAME_SIGNAL_MS) return
    logger.info(isFirst ? `${signal}: draining` : `${signal}: aborting what still runs`)
    void close(isFirst ? {} : { timeoutMs: 0 })
  }
  for (const signal of SIGNALS) process.on(signal, listener)
  return () => {
    for (const signal of SIGNALS) process.off(signal, listener)
  }
}
