import assert from 'node:assert/strict'
import type { Delivery } from '../../src/model/delivery.ts'
import type { Subscription, Transport } from '../../src/transport/transport.ts'

/** What a queue is, in the simplest words: a list of messages with a state each. */
export interface Model {
  readonly messages: Map<string, ModelMessage>
  paused: boolean
}

export interface ModelMessage {
  readonly id: string
  readonly priority: number
  state: 'ready' | 'scheduled' | 'in flight' | 'dead' | 'gone'
  counted: number
  crashes: number
  records: number
  redrives: number
  alone: boolean
  /**
   * Its lease ran out and nobody has received since. Backends take such a message back when
   * somebody asks for work, so until then it may still show as in flight.
   */
  inLimbo: boolean
}

/** The queue under test, with what a worker would have in hand. */
export interface Real {
  readonly near: Transport
  readonly far: Transport
  readonly queue: string
  readonly subscription: Subscription
  /** The last delivery of each message that is in flight. */
  readonly held: Map<string, Delivery>
  /** Deliveries that are no longer ours. */
  readonly zombies: Delivery[]
  /** The smallest lease of the backend. */
  readonly leaseMs: number
  readonly passes: (ms: number) => Promise<void>
  readonly signal: AbortSignal
}

export function newModel(): Model {
  return { messages: new Map(), paused: false }
}

export function newMessage(id: string, priority: number): ModelMessage {
  return {
    id,
    priority,
    state: 'ready',
    counted: 0,
    crashes: 0,
    records: 0,
    redrives: 0,
    alone: false,
    inLimbo: false,
  }
}

export function inState(model: Model, ...states: readonly ModelMessage['state'][]): ModelMessage[] {
  return [...model.messages.values()].filter(({ state }) => states.includes(state))
}

/** The message that a command means by its number; undefined when there is none in these states. */
export function pick(
  model: Model,
  at: number,
  ...states: readonly ModelMessage['state'][]
): ModelMessage | undefined {
  const candidates = inState(model, ...states)
  return candidates[at % Math.max(1, candidates.length)]
}

/** Asked from the second connection after every command. */
export async function assertSame(model: Model, { far, queue }: Real): Promise<void> {
  const gauge = await far.browse?.gauge(queue)
  assert.ok(gauge)
  const { depth = 0, scheduled, inFlight = 0, dead, paused } = gauge
  const ready = inState(model, 'ready')
  const limbo = ready.filter(({ inLimbo }) => inLimbo).length
  const held = inState(model, 'in flight').length
  assert.ok(
    depth >= ready.length - limbo && inFlight >= held,
    `${depth} ready, ${inFlight} in flight`,
  )
  assert.deepEqual(
    { total: depth + inFlight, scheduled, dead, paused },
    {
      total: ready.length + held,
      scheduled: inState(model, 'scheduled').length,
      dead: inState(model, 'dead').length,
      paused: model.paused,
    },
  )
  for (const message of model.messages.values()) {
    const stored = await far.browse?.get?.(queue, message.id)
    const letter = await far.shelf?.get(queue, message.id)
    const { state } = message
    assert.equal(stored !== undefined, state !== 'dead' && state !== 'gone')
    assert.equal(letter !== undefined, state === 'dead')
    if (message.inLimbo) continue
    if (stored) assert.equal(stored.state, state)
    const history = stored?.history ?? letter?.history
    if (history) assertHistory(message, history)
  }
}

export function assertHistory(message: ModelMessage, history: Delivery['history']): void {
  const { counted, crashes, records, redrives } = history
  assert.deepEqual(
    { counted, crashes, records: records.length, redrives },
    {
      counted: message.counted,
      crashes: message.crashes,
      records: message.records,
      redrives: message.redrives,
    },
  )
}
