import { setTimeout as sleep } from 'node:timers/promises'
import type { Envelope } from '../../src/model/envelope.ts'
import type { Transport } from '../../src/transport/transport.ts'

const { signal } = new AbortController()

function envelope(id: string): Envelope {
  return { id, body: new Uint8Array([1, 2, 3]), headers: {}, priority: 0 }
}

/** Sends pairs to the queue `q`, each until it is confirmed. */
export async function produce(
  transport: Transport,
  prefix: string,
  confirmed: Set<string>,
  stop: AbortSignal,
): Promise<void> {
  for (let n = 0; !stop.aborted && confirmed.size < 6_000; n++) {
    const ids = [`${prefix}-${n}-a`, `${prefix}-${n}-b`]
    // The same ids again until they are confirmed: what came through unnoticed is stored once.
    while (!stop.aborted && !(await sendAll(transport, ids, confirmed))) await sleep(50)
  }
}

async function sendAll(
  transport: Transport,
  ids: readonly string[],
  confirmed: Set<string>,
): Promise<boolean> {
  try {
    const batch = ids.map((id) => envelope(id))
    for (const outcome of await transport.send('q', batch, { signal })) {
      if (outcome.ok) confirmed.add(outcome.id)
    }
    return true
  } catch {
    return false
  }
}

/** Receives from the queue `q` and acks, whatever fails on the way. */
export async function work(
  transport: Transport,
  done: Set<string>,
  stop: AbortSignal,
  enough: () => boolean = () => false,
): Promise<void> {
  const subscription = await transport.subscribe('q', {
    group: 'g',
    leaseMs: 2_000,
    maxInFlight: 100,
  })
  while (!stop.aborted && !enough()) {
    try {
      const batch = await subscription.receive({ max: 50, waitMs: 200, signal: stop })
      for (const { envelope: sent } of batch) done.add(sent.id)
      await subscription.settle(batch.map((delivery) => ({ as: 'acked', delivery })))
    } catch {
      await sleep(50)
    }
  }
  await subscription.close()
}
