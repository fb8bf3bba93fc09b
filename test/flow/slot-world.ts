import {
  adaptSlots,
  firstSlots,
  LOOK_EVERY_MS,
  type SlotSettings,
  type SlotState,
} from '../../src/flow/adapt-slots.ts'

/** One queue, one worker that adapts, and time that is only counted: arrivals and handler times come from the seed. */
export interface SlotWorld {
  readonly settings: SlotSettings
  readonly random: () => number
  /** Messages per second at this moment. */
  readonly arrivals: (ms: number) => number
  readonly handlerMs: number
  /** Above so many handlers side by side they share what is behind them, and each takes longer. */
  readonly knee?: number
  /** Of a handler time: always the same, or anything with this average. */
  readonly chance: 'none' | 'exponential'
  readonly forMs: number
}

export interface SlotCourse {
  /** After each look. */
  readonly slots: readonly number[]
  readonly ages: readonly number[]
  readonly state: SlotState
}

export function courseOf(world: SlotWorld): SlotCourse {
  const { settings } = world
  let state = firstSlots(settings)
  const slots: number[] = []
  const ages: number[] = []
  const waiting: number[] = []
  let head = 0
  let ends: number[] = []
  let nextArrival = spread(world, 1_000 / world.arrivals(0))
  for (let now = 0; now < world.forMs; now += LOOK_EVERY_MS) {
    const until = now + LOOK_EVERY_MS
    let runs = 0
    let busyMs = 0
    let tookMs = 0
    for (let at = now; at < until; ) {
      const end = ends.length === 0 ? Number.POSITIVE_INFINITY : Math.min(...ends)
      const next = Math.min(until, nextArrival, end)
      busyMs += ends.length * (next - at)
      at = next
      if (at === nextArrival && at < until) {
        waiting.push(at)
        nextArrival = at + spread(world, 1_000 / world.arrivals(at))
      } else if (at === end && at < until) {
        ends = without(ends, end)
        runs++
      }
      while (ends.length < state.slots && head < waiting.length) {
        head++
        const ms = spread(world, world.handlerMs * slowness(world, ends.length + 1))
        tookMs += ms
        ends.push(at + ms)
      }
    }
    const oldest = waiting[head]
    const ageMs = oldest === undefined ? 0 : until - oldest
    const handlerMs = runs === 0 ? world.handlerMs : busyMs / Math.max(1, runs)
    const look = {
      ageMs,
      depth: waiting.length - head,
      busy: busyMs / LOOK_EVERY_MS,
      runs,
      handlerMs: tookMs === 0 ? undefined : handlerMs,
      forMs: LOOK_EVERY_MS,
    }
    state = adaptSlots(state, look, settings)
    slots.push(state.slots)
    ages.push(ageMs)
  }
  return { slots, ages, state }
}

function slowness({ knee }: SlotWorld, running: number): number {
  return knee === undefined ? 1 : Math.max(1, running / knee)
}

function spread({ chance, random }: SlotWorld, average: number): number {
  return chance === 'none' ? average : -Math.log(1 - random()) * average
}

function without(ends: readonly number[], end: number): number[] {
  const at = ends.indexOf(end)
  return ends.filter((_, i) => i !== at)
}

/** How often it went up after down or down after up. */
export function turns(slots: readonly number[]): number {
  let found = 0
  let last = 0
  for (const [i, now] of slots.entries()) {
    const way = Math.sign(now - (slots[i - 1] ?? now))
    if (way === 0) continue
    if (last !== 0 && way !== last) found++
    last = way
  }
  return found
}
