import { closedError } from '../../model/closed-error.ts'
import { hasCode } from '../../model/errors.ts'
import type { Fault } from '../../model/fault.ts'
import { problems, show } from '../../model/problems.ts'
import type { StoringConnector } from '../../store/store.ts'
import { memoryStore } from '../../stores/memory/memory-store.ts'
import { ownFault } from '../../transport/own-errors.ts'
import { openSubscriptions } from '../../transport/subscriptions.ts'
import type { ConnectContext, Transport } from '../../transport/transport.ts'
import { browse } from './browse.ts'
import { haltedKeys } from './halted-keys.ts'
import { shedOf } from './shed.ts'
import { shelf } from './shelf.ts'
import { needQueue, newStore, type Store } from './store.ts'
import { memorySubscription } from './subscription.ts'
import { memoryTraits } from './traits.ts'
import type { MemoryTransaction } from './transaction.ts'

/** A store in this process. Connecting the same connector again reaches the same messages. */
export interface MemoryConnector extends StoringConnector {
  /** Same value as the transport's; see `memoryInbox({ transport })`. */
  readonly databaseId: string
  /** Opens a transaction: pass it as `tx`, then commit it or roll it back. */
  begin(): MemoryTransaction
  /** Epoch ms when the next scheduled message or lease falls due; undefined when there is none. */
  nextDueAt(): number | undefined
}

export interface MemoryOptions {
  /** How errors and `databaseId` name the store. Default `memory-1`, `memory-2`, … */
  readonly name?: string
}

let made = 0

/**
 * Queues in the memory of this process, gone with it: for tests and for trying things out. Keeps
 * every promise of the SQL transports, on the clock that it is given.
 *
 * @example
 * const app = await createMillrace({ transport: memory(), queues: [deliveries] })
 * @throws MILLRACE_INVALID_OPTIONS
 */
export function memory(options: MemoryOptions = {}): MemoryConnector {
  const found = problems('memory')
  found.knownKeys(options, ['name'])
  const { name } = options
  if (name !== undefined && typeof name !== 'string') {
    found.add(`name: expected a text, got ${show(name)}`)
  }
  found.throwIfAny()
  made += 1
  const store = newStore(`memory:${name ?? `memory-${made}`}`)
  const beside = memoryStore()
  return {
    name: 'memory',
    databaseId: store.databaseId,
    begin: () => store.transactions.begin(),
    nextDueAt: store.nextDueAt,
    connect: async (context) => memoryTransport(store, context),
    ownStore: () => beside,
  }
}

function memoryTransport(store: Store, context: ConnectContext): Transport {
  const { clock } = context
  const subscriptions = openSubscriptions()
  let closed = false
  const open = (signal?: AbortSignal): void => {
    if (closed) throw closedError('the memory transport')
    signal?.throwIfAborted()
  }
  return {
    name: 'memory',
    traits: memoryTraits,
    databaseId: store.databaseId,
    async send(queue, batch, options) {
      open(options.signal)
      return store.send(queue, batch, options.atomic ?? false, clock.now())
    },
    async subscribe(name, options) {
      open()
      const queue = needQueue(store, name)
      const { leaseMs } = options
      return subscriptions.open((onClose) => memorySubscription({ queue, clock, leaseMs, onClose }))
    },
    diagnose,
    async close() {
      closed = true
      await subscriptions.close()
    },
    topology: {
      async ensure(queues, signal) {
        open(signal)
        for (const spec of queues) store.ensure(spec)
      },
    },
    browse: browse(store, clock, open),
    shelf: shelf(store, clock, open),
    async shed(name, options) {
      open(options.signal)
      return shedOf(needQueue(store, name), options, clock.now())
    },
    haltedKeys: haltedKeys(store, clock, open),
    transaction(tx) {
      open()
      return store.transactions.find(tx, clock.now)
    },
  }
}

/** Nothing is ever half done here: whatever was thrown, nothing was applied. */
function diagnose(error: unknown): Fault {
  const own = ownFault(error)
  if (own) return own
  const raced = hasCode(error, 'MILLRACE_BACKEND_FAULT')
  return {
    code: raced ? 'conflict' : 'unknown',
    retryable: raced,
    outcome: 'notApplied',
    cause: error,
  }
}
