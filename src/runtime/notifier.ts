/** Wakes everybody who waits for "something changed"; each looks for itself whether it matters. */
export interface Notifier {
  wait(): Promise<void>
  notify(): void
}

export function notifier(): Notifier {
  let waiting: (() => void)[] = []
  return {
    wait: () => new Promise((resolve) => waiting.push(resolve)),
    notify: () => {
      // Told several times for each message, and mostly nobody waits.
      if (waiting.length === 0) return
      const woken = waiting
      waiting = []
      for (const wake of woken) wake()
    },
  }
}
