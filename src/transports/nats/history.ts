import { type AttemptHistory, type AttemptRecord, errorClassOf } from '../../model/history.ts'
import { read } from '../../model/probe.ts'

/** A history as text for a header; above `maxBytes` stacks go first, then records, both from the middle. */
export function historyText(history: AttemptHistory, maxBytes: number): string {
  const whole = JSON.stringify(history)
  if (size(whole) <= maxBytes) return whole
  const bare = history.records.map(({ stack: _, ...record }) => record)
  let kept: readonly AttemptRecord[] = withEnds(bare, history.records)
  for (;;) {
    const text = JSON.stringify({ ...history, records: kept })
    if (size(text) <= maxBytes) return text
    if (kept.length === 0) return JSON.stringify({ ...history, records: [] })
    const middle = Math.floor(kept.length / 2)
    kept = kept.filter((_, at) => at !== middle)
  }
}

/** The first and the last attempt keep their stacks. */
function withEnds(
  bare: readonly AttemptRecord[],
  whole: readonly AttemptRecord[],
): readonly AttemptRecord[] {
  return bare.map((record, at) =>
    at === 0 || at === bare.length - 1 ? (whole[at] ?? record) : record,
  )
}

function size(text: string): number {
  return Buffer.byteLength(text)
}

/** Undefined for a text that is no history: anybody may write headers. */
export function historyFrom(text: string | undefined): AttemptHistory | undefined {
  if (text === undefined || text === '') return undefined
  try {
    return historyOf(JSON.parse(text))
  } catch {
    return undefined
  }
}

export function historyOf(value: unknown): AttemptHistory | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  const records = read(value, 'records')
  return {
    counted: count(read(value, 'counted')),
    crashes: count(read(value, 'crashes')),
    throttledSince: moment(read(value, 'throttledSince')),
    records: Array.isArray(records) ? records.map(recordOf) : [],
    redrives: count(read(value, 'redrives')),
  }
}

function recordOf(value: unknown): AttemptRecord {
  const stack = read(value, 'stack')
  return {
    at: moment(read(value, 'at')) ?? 0,
    errorClass: errorClassOf(read(value, 'errorClass')),
    code: text(read(value, 'code')),
    message: text(read(value, 'message')),
    ...(typeof stack === 'string' ? { stack } : {}),
  }
}

function count(value: unknown): number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : 0
}

function moment(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : ''
}
