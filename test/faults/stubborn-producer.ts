import { setTimeout as sleep } from 'node:timers/promises'

export interface StubbornProducer {
  /** The ids of which a send was answered. */
  readonly confirmed: ReadonlySet<string>
  /** Sends that failed and were tried again. */
  refused(): number
  stop(): Promise<void>
}

/** Sends one after another, each under the same id until it is confirmed, as a relay does. */
export function stubbornProducer(
  send: (id: string) => Promise<unknown>,
  { againMs }: { readonly againMs: number },
): StubbornProducer {
  const stopped = new AbortController()
  const confirmed = new Set<string>()
  let refused = 0
  const sendOne = async (id: string): Promise<void> => {
    while (!stopped.signal.aborted) {
      try {
        await send(id)
        confirmed.add(id)
        return
      } catch {
        refused += 1
        await sleep(againMs)
      }
    }
  }
  const running = (async () => {
    for (let n = 0; !stopped.signal.aborted; n++) {
      await sendOne(`order-${n}`)
      await sleep(5)
    }
  })()
  return {
    confirmed,
    refused: () => refused,
    async stop() {
      stopped.abort()
      await running
    },
  }
}
