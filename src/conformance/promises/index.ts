import type { Family } from '../promise.ts'
import { send } from './send.ts'

/** All promises, in the order of docs/guarantees.md. */
export const families: readonly Family[] = [send]
