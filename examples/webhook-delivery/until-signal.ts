const SIGNALS = ['SIGINT', 'SIGTERM'] as const

/** Under npm one Ctrl-C arrives twice, from the terminal and handed on by npm; nobody presses it that fast. */
const SAME_SIGNAL_MS = 100

/** Resolves at the first SIGINT or SIGTERM; calls `again` at each later one. */
export function untilSignal(again: () => void): Promise<void> {
  return new Promise((resolve) => {
    let firstAt: number | undefined
    const heard = (): void => {
      firstAt ??= performance.now()
      resolve()
      if (performance.now() - firstAt > SAME_SIGNAL_MS) again()
    }
    for (const signal of SIGNALS) process.on(signal, heard)
  })
}
