import { keepsAll } from '../../transport/keeps-all.ts'
import type { Traits } from '../../transport/traits.ts'

/** Everything that the seam knows, in the memory of one process and gone with it. */
export const memoryTraits: Traits = {
  ...keepsAll,
  order: 'perKey',
  priorities: 10,
  fairness: true,
  capacity: 'exact',
  clock: 'caller',
  durability: 'process',
}
