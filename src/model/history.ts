export type ErrorClass = 'transient' | 'permanent' | 'throttled' | 'crashed'

export const errorClasses: readonly ErrorClass[] = [
  'transient',
  'permanent',
  'throttled',
  'crashed',
]

/** The class that a store holds as text; `transient` for one that this version does not know. */
export function errorClassOf(value: unknown): ErrorClass {
  return errorClasses.find((known) => known === value) ?? 'transient'
}

/** What is remembered of one failed attempt: redacted; message and stack together are at most 8 kB. */
export interface AttemptRecord {
  /** Epoch ms. */
  readonly at: number
  readonly errorClass: ErrorClass
  readonly code: string
  readonly message: string
  /**
   * Name and first line of the message, the frames (2 kB), and a line for each of up to three causes. Absent when what
   * was thrown had none, and after a crash.
   */
  readonly stack?: string
}

/** Attempts so far, kept with the message by the store (or a layer). */
export interface AttemptHistory {
  /** Runs counted against `retry.attempts`. The next attempt is `counted + 1`. */
  readonly counted: number
  /** How many of them ended with the death of their worker. */
  readonly crashes: number
  /** Epoch ms of the first throttled attempt since the message was sent or redriven. */
  readonly throttledSince: number | undefined
  /** First and last `RECORDS_KEPT` failed attempts, oldest first; redrives keep them. */
  readonly records: readonly AttemptRecord[]
  /** How often the message came back from the dead letters. */
  readonly redrives: number
}

/** A counter as far as JavaScript holds it exactly; the columns of a database may be wider. */
export function saturated(count: number): number {
  return Math.min(count, Number.MAX_SAFE_INTEGER)
}

const RECORDS_KEPT = 20

export const freshHistory: AttemptHistory = {
  counted: 0,
  crashes: 0,
  throttledSince: undefined,
  records: [],
  redrives: 0,
}

/** Appends a record and keeps the first and the last `RECORDS_KEPT`. */
function appendRecord(
  records: readonly AttemptRecord[],
  record: AttemptRecord,
): readonly AttemptRecord[] {
  const all = [...records, record]
  if (all.length <= 2 * RECORDS_KEPT) return all
  return [...all.slice(0, RECORDS_KEPT), ...all.slice(-RECORDS_KEPT)]
}

/** The history after a released attempt. Every store that keeps history uses this one function. */
export function afterRelease(
  history: AttemptHistory,
  release: { readonly counted: boolean; readonly attempt?: AttemptRecord },
): AttemptHistory {
  const { attempt, counted } = release
  const throttled = attempt?.errorClass === 'throttled'
  return {
    counted: history.counted + (counted ? 1 : 0),
    crashes: history.crashes,
    throttledSince: history.throttledSince ?? (throttled ? attempt.at : undefined),
    records: attempt ? appendRecord(history.records, attempt) : history.records,
    redrives: history.redrives,
  }
}

/** The record that a store writes when it takes a message back from a holder that vanished. */
function crashRecord(at: number): AttemptRecord {
  return { at, errorClass: 'crashed', code: CRASH_CODE, message: CRASH_MESSAGE }
}

export const CRASH_CODE = 'MILLRACE_WORKER_LOST'
const CRASH_MESSAGE = 'The worker vanished with this message in its hands (its lease ran out).'

/** The history after the holder vanished: one counted attempt of class crashed. */
export function afterCrash(history: AttemptHistory, at: number): AttemptHistory {
  return {
    ...history,
    counted: history.counted + 1,
    crashes: history.crashes + 1,
    records: appendRecord(history.records, crashRecord(at)),
  }
}

/** The history of a redriven message: starts at attempt 1, keeps what happened before. */
export function afterRedrive(history: AttemptHistory): AttemptHistory {
  return {
    counted: 0,
    crashes: 0,
    throttledSince: undefined,
    records: history.records,
    redrives: history.redrives + 1,
  }
}
