/** Between what bounds the handlers that run side by side in one process may change, and for which age. */
export interface AdaptiveConcurrency {
  /** 1 to 10,000. */
  readonly min: number
  /** From min to 10,000. */
  readonly max: number
  /** How old the oldest ready message may become, in ms, 100 to 86,400,000. Default 10,000. */
  readonly targetAgeMs?: number
}

export type SlotSettings = Required<AdaptiveConcurrency>

/** What one process saw of its queue since the last look. */
export interface SlotLook {
  /** Of the oldest ready message; undefined where the backend does not say. */
  readonly ageMs: number | undefined
  readonly depth: number | undefined
  /** Handlers that ran, on average. */
  readonly busy: number
  /** Handlers that ended. */
  readonly runs: number
  readonly handlerMs: number | undefined
  /** Time since the last look. */
  readonly forMs: number
}

/** Everything that is remembered from look to look. */
export interface SlotState {
  readonly slots: number
  /** For how long there were slots to spare, and the most that was busy then. */
  readonly calm: { readonly ms: number; readonly busy: number }
  /** What was done while all slots were busy, once a change of the slots can be seen in it. */
  readonly work: { readonly waitMs: number; readonly ms: number; readonly runs: number }
  /** Raises whose use is not proven yet, and how much was done before them. */
  readonly raised:
    | { readonly from: number; readonly perSecond: number; readonly runs: number }
    | undefined
  readonly lastWay: 'up' | 'down' | undefined
  /** So few were too few, lately. */
  readonly tooFew: Memory | undefined
  /** More than so many did no more work, lately: something behind the handlers is at its limit. */
  readonly enough: Memory | undefined
}

/** What is not tried again for a while; each time that it proves right, for twice as long. */
interface Memory {
  readonly slots: number
  /** Below 0: it is over, but not forgotten. */
  readonly looksLeft: number
  readonly hold: number
}

/** A look at a queue costs a question to the backend; handlers of seconds show nothing earlier either. */
export const LOOK_EVERY_MS: number = 5_000

const FULL_SHARE = 0.9
const SPARE_SHARE = 0.6
/** Between the two above, so that it rests there. */
const REST_SHARE = 0.75
const CALM_LOOKS = 3
const HOLD_FIRST_LOOKS = 12
const HOLD_MAX_LOOKS = 720
/** Raises must bring this share of what they would bring if nothing but the slots were scarce. */
const GAIN_SHARE = 0.25
const JUDGE_RUNS = 200
const JUDGE_MS = 2 * LOOK_EVERY_MS

export function firstSlots(settings: SlotSettings): SlotState {
  return {
    slots: settings.min,
    calm: NOT_CALM,
    work: { waitMs: 0, ms: 0, runs: 0 },
    raised: undefined,
    lastWay: undefined,
    tooFew: undefined,
    enough: undefined,
  }
}

const NOT_CALM = { ms: 0, busy: 0 }

/**
 * How many handlers may run after this look. Messages that are too old while all slots are busy double the slots; slots to spare for
 * three looks (and three handler times) are given up. What proved to be too few, or more than enough, is not tried again for a time that
 * doubles: under a constant load the changes of direction become rarer and rarer.
 */
export function adaptSlots(before: SlotState, look: SlotLook, settings: SlotSettings): SlotState {
  const full = look.busy >= FULL_SHARE * before.slots
  const state = remembered(before, look, full)
  const late = ageOf(look, state.slots, full) > settings.targetAgeMs
  const use = useOfRaises(state)
  if (full && use === 'none' && state.raised !== undefined) {
    const enough = held(state.enough, state.raised.from, 'longer')
    return changed({ ...state, enough, raised: undefined }, enough.slots, look)
  }
  if (late && full)
    return use === 'open' ? { ...state, calm: NOT_CALM } : raise(state, look, settings)
  const spare = look.busy < SPARE_SHARE * state.slots && !late
  return spare ? lower(state, look, settings) : { ...state, calm: NOT_CALM }
}

/** Without an age: how long what waits takes this process. Without any number: late when all slots are busy. */
function ageOf(look: SlotLook, slots: number, full: boolean): number {
  if (look.ageMs !== undefined) return look.ageMs
  if (look.depth === undefined || look.handlerMs === undefined) {
    return full ? Number.POSITIVE_INFINITY : 0
  }
  return (look.depth * look.handlerMs) / slots
}

function remembered(state: SlotState, look: SlotLook, full: boolean): SlotState {
  const { waitMs, ms, runs } = state.work
  const counts = full && waitMs <= 0
  return {
    ...state,
    work: {
      waitMs: waitMs - look.forMs,
      ms: counts ? ms + look.forMs : ms,
      runs: counts ? runs + look.runs : runs,
    },
    tooFew: older(state.tooFew),
    enough: older(state.enough),
  }
}

/** Whether the raises made more get done. `open` while it is too early to tell, `likely` while chance may explain it. */
function useOfRaises({ raised, work, slots }: SlotState): 'open' | 'likely' | 'proven' | 'none' {
  if (raised === undefined) return 'proven'
  if (work.ms === 0 || (work.runs < JUDGE_RUNS && work.ms < JUDGE_MS)) return 'open'
  const gain = (work.runs * 1_000) / work.ms / raised.perSecond
  // Three standard deviations of the smaller count.
  const chance = 1 + 3 / Math.sqrt(Math.max(1, Math.min(work.runs, raised.runs)))
  const wanted = 1 + (slots / raised.from - 1) * GAIN_SHARE
  if (gain * chance < wanted) return 'none'
  return gain / chance >= wanted ? 'proven' : 'likely'
}

function raise(state: SlotState, look: SlotLook, settings: SlotSettings): SlotState {
  const { slots, work, lastWay } = state
  const ceiling = isHeld(state.enough) ? state.enough.slots : settings.max
  const next = Math.min(settings.max, Math.max(slots, ceiling), slots * 2)
  if (next === slots) return { ...state, calm: NOT_CALM }
  const tooFew = held(state.tooFew, slots, lastWay === 'down' ? 'longer' : 'as long')
  return changed({ ...state, tooFew, raised: baseline(state, work) }, next, look)
}

/** Raises that are not proven yet are judged together with the next one. */
function baseline(state: SlotState, work: SlotState['work']): SlotState['raised'] {
  if (state.raised !== undefined && useOfRaises(state) !== 'proven') return state.raised
  if (work.ms === 0 || work.runs === 0) return undefined
  return { from: state.slots, perSecond: (work.runs * 1_000) / work.ms, runs: work.runs }
}

function lower(state: SlotState, look: SlotLook, settings: SlotSettings): SlotState {
  const calm = { ms: state.calm.ms + look.forMs, busy: Math.max(state.calm.busy, look.busy) }
  const rested = { ...state, calm, raised: undefined }
  const calmMs = Math.max(CALM_LOOKS * LOOK_EVERY_MS, CALM_LOOKS * (look.handlerMs ?? 0))
  if (calm.ms < calmMs) return rested
  const floor = isHeld(state.tooFew) ? state.tooFew.slots + 1 : settings.min
  const wanted = Math.max(settings.min, floor, Math.ceil(calm.busy / REST_SHARE))
  return wanted >= state.slots ? rested : changed(rested, wanted, look)
}

function changed(state: SlotState, slots: number, look: SlotLook): SlotState {
  const work = { waitMs: look.handlerMs ?? 0, ms: 0, runs: 0 }
  const lastWay = slots > state.slots ? 'up' : 'down'
  return { ...state, slots, calm: NOT_CALM, work, lastWay }
}

function held(before: Memory | undefined, slots: number, time: 'longer' | 'as long'): Memory {
  const last = before?.hold ?? HOLD_FIRST_LOOKS
  const isLonger = before !== undefined && time === 'longer'
  const hold = isLonger ? Math.min(HOLD_MAX_LOOKS, last * 2) : last
  return { slots, looksLeft: hold, hold }
}

/** Forgotten when nobody met it for as long as it can be held at most. */
function older(memory: Memory | undefined): Memory | undefined {
  if (memory === undefined || memory.looksLeft <= -HOLD_MAX_LOOKS) return undefined
  return { ...memory, looksLeft: memory.looksLeft - 1 }
}

function isHeld(memory: Memory | undefined): memory is Memory {
  return memory !== undefined && memory.looksLeft > 0
}
