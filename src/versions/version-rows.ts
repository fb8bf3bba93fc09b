import type { Row } from '../sql/executor.ts'
import { asNumber } from '../sql/sqlite-handle.ts'
import type { Gap } from './version-state.ts'

export function bigintOf(value: unknown): bigint | undefined {
  return typeof value === 'string' ? BigInt(value) : undefined
}

export function gapOf(row: Row): Gap {
  return {
    key: String(row.key),
    next: BigInt(String(row.next)),
    waiting: asNumber(row.waiting),
    lowest: BigInt(String(row.lowest)),
    sentAt: asNumber(row.sent_at),
  }
}
