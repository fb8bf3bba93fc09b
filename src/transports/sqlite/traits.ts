import { keepsAll } from '../../transport/keeps-all.ts'
import type { EnvelopeBounds } from '../../transport/refusal.ts'
import type { Traits } from '../../transport/traits.ts'

/** What every SQLite transport takes. */
export const sqliteBounds: EnvelopeBounds = {
  delay: keepsAll.delay,
  priorities: 10,
  fairness: true,
  limits: keepsAll.limits,
}

export function sqliteTraits(durability: Traits['durability']): Traits {
  return {
    ...keepsAll,
    ...sqliteBounds,
    order: 'perKey',
    capacity: 'exact',
    clock: 'caller',
    durability,
  }
}
