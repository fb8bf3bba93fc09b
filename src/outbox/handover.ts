import type { Sent } from '../model/delivery.ts'
import type { Fault } from '../model/fault.ts'
import type { OutboxRow, Publish } from './outbox.ts'

/** What became of claimed rows. */
export interface Handover<R extends OutboxRow> {
  readonly confirmed: readonly R[]
  readonly failed: readonly FailedRow<R>[]
  /** Kept back, because an earlier row of their key failed. */
  readonly untouched: readonly R[]
}

export interface FailedRow<R extends OutboxRow> {
  readonly row: R
  readonly fault: Fault
}

/**
 * Hands rows over so that a row leaves only after every earlier row of its ordering key was confirmed: first the first
 * rows of all keys together, then the second ones, and so on. Rows without a key all go in the first step.
 */
export async function handOver<R extends OutboxRow>(
  rows: readonly R[],
  publish: Publish,
): Promise<Handover<R>> {
  const confirmed: R[] = []
  const failed: FailedRow<R>[] = []
  const untouched: R[] = []
  let lanes = lanesOf(rows)
  for (let step = 0; lanes.length > 0; step++) {
    const batch = lanes.flatMap((lane) => lane[step] ?? [])
    const outcomes = await outcomesOf(publish, batch)
    const going: (readonly R[])[] = []
    for (const [at, row] of batch.entries()) {
      const outcome = outcomes[at] ?? silent
      const lane = lanes[at] ?? []
      if (!outcome.ok) {
        failed.push({ row, fault: outcome.fault })
        untouched.push(...lane.slice(step + 1))
        continue
      }
      confirmed.push(row)
      if (lane.length > step + 1) going.push(lane)
    }
    lanes = going
  }
  return { confirmed, failed, untouched }
}

function lanesOf<R extends OutboxRow>(rows: readonly R[]): readonly (readonly R[])[] {
  const lanes: R[][] = []
  const keyed = new Map<string, R[]>()
  for (const row of rows) {
    const { orderingKey } = row.envelope
    const key = orderingKey === undefined ? undefined : `${row.queue} ${orderingKey}`
    const lane = key === undefined ? undefined : keyed.get(key)
    if (lane) {
      lane.push(row)
      continue
    }
    const made = [row]
    lanes.push(made)
    if (key !== undefined) keyed.set(key, made)
  }
  return lanes
}

const silent: Sent = {
  ok: false,
  fault: { code: 'unknown', retryable: true, outcome: 'unknown' },
}

/** Whatever goes wrong while publishing is an outcome of these rows: they stay and are tried again. */
async function outcomesOf(publish: Publish, batch: readonly OutboxRow[]): Promise<readonly Sent[]> {
  try {
    return await publish(batch)
  } catch (cause) {
    const fault: Fault = { code: 'unavailable', retryable: true, outcome: 'unknown', cause }
    return batch.map(() => ({ ok: false, fault }))
  }
}
