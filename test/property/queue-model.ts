import assert from 'node:assert/strict'
import type { Delivery } from '../../src/model/delivery.ts'
import type { Subscription, Transport } from '../../src/transport/transport.ts'

/** What a queue is, in the simplest words: a list of messages with a state each. */
export interface Model {
  readonly messages: Map<string, ModelMessage>
  paused: boolean
  readonly onDead: OnDead
  /** The dead message that halts an ordering key, by key. */
  readonly halted: Map<string, string>
}

export type OnDead = 'continue' | 'halt-key'

export interface ModelMessage {
  readonly id: string
  readonly priority: number
  readonly key: string | undefined
  /** The order of its key. */
  turn: number
  /** `behind`: an earlier one of its key has not ended. */
  state: 'ready' | 'behind' | 'scheduled' | 'in flight' | 'dead' | 'gone'
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

export function newModel(onDead: OnDead): Model {
  return { messages: new Map(), paused: false, onDead, halted: new Map() }
}

export function newMessage(id: string, priority: number, key: string | undefined): ModelMessage {
  return {
    id,
    priority,
    key,
    turn: 0,
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

let turns = 0

/** It is new, or comes back from the dead: ready, unless others of its key are before it. */
export function enter(model: Model, message: ModelMessage): void {
  const { key, id } = message
  turns += 1
  message.turn = turns
  message.state = 'ready'
  if (key === undefined) return
  if (model.halted.get(key) === id) model.halted.delete(key)
  else if (model.halted.has(key) || living(model, key, message).length > 0) message.state = 'behind'
}

/** It has ended: the next one of its key is ready, unless there is one already, or the key stands still. */
export function leave(model: Model, message: ModelMessage, state: 'dead' | 'gone'): void {
  const { key, id } = message
  message.state = state
  if (key === undefined) return
  const rest = living(model, key, message)
  const isHead = rest.every((other) => other.state === 'behind')
  if (state === 'dead' && model.onDead === 'halt-key' && isHead) model.halted.set(key, id)
  if (isHead && !model.halted.has(key)) advance(model, key)
}

/** A person lets it go on. */
export function skip(model: Model, key: string): void {
  if (model.halted.delete(key)) advance(model, key)
}

function advance(model: Model, key: string): void {
  const [next] = living(model, key).sort((a, b) => a.turn - b.turn)
  if (next) next.state = 'ready'
}

function living(model: Model, key: string, but?: ModelMessage): ModelMessage[] {
  const all = inState(model, 'ready', 'behind', 'scheduled', 'in flight')
  return all.filter((other) => other.key === key && other !== but)
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
  const ready = inState(model, 'ready', 'behind')
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
  const halted = await far.haltedKeys?.list(queue, { limit: 100 })
  assert.deepEqual(
    new Map(halted?.map(({ key, messageId }) => [key, messageId])),
    new Map([...model.halted].sort()),
  )
  for (const message of model.messages.values()) {
    const stored = await far.browse?.get?.(queue, message.id)
    const letter = await far.shelf?.get(queue, message.id)
    const { state } = message
    assert.equal(stored !== undefined, state !== 'dead' && state !== 'gone')
    assert.equal(letter !== undefined, state === 'dead')
    if (message.inLimbo) continue
    if (stored) assert.equal(stored.state, state === 'behind' ? 'ready' : state)
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
