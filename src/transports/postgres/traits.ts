import { keepsAll } from '../../transport/keeps-all.ts'
import type { Traits } from '../../transport/traits.ts'

export const postgresTraits: Traits = {
  ...keepsAll,
  order: 'perKey',
  priorities: 10,
  fairness: true,
  capacity: 'sampled',
  clock: 'server',
  durability: 'disk',
}
