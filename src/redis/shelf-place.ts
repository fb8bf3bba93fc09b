import { type ShelfPlace, startOf } from '../transport/shelf-page.ts'
import type { AuditEntry, ShelfFilter, ShelfListOptions } from '../transport/transport.ts'
import type { Reply } from './wire.ts'

/** Places of the shelf sort as texts: the moment in 15 digits, then the id. The bound itself is left out. */
export function upTo(options: ShelfFilter & Pick<ShelfListOptions, 'cursor'>): string {
  const { deadBefore } = options
  const start = placeText(startOf(options))
  if (deadBefore === undefined) return `(${start}`
  const end = placeText({ deadAt: Math.floor(deadBefore) + 1, id: '' })
  return `(${[start, end].sort()[0]}`
}

/** No clock reaches sixteen digits; the newest place of all is behind everything. */
const MOMENT_DIGITS = 15
const MOMENT_MAX = 10 ** MOMENT_DIGITS - 1

function placeText({ deadAt, id }: ShelfPlace): string {
  const moment = Math.min(Math.max(0, Math.round(deadAt)), MOMENT_MAX)
  return `${String(moment).padStart(MOMENT_DIGITS, '0')}:${id}`
}

export function texts(reply: Reply): readonly string[] {
  return Array.isArray(reply) ? reply.map(String) : []
}

export function auditEntry(reply: Reply, queue: string): AuditEntry {
  const fields = Array.isArray(reply) && Array.isArray(reply[1]) ? reply[1].map(String) : []
  const field = (name: string): string => fields[fields.indexOf(name) + 1] ?? ''
  const act = field('act')
  return {
    at: Number(field('at')),
    act: act === 'discard' || act === 'skip' ? act : 'redrive',
    queue,
    messageId: field('id'),
    actor: field('actor'),
    reason: field('reason'),
  }
}
