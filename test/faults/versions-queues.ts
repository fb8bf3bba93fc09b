import { defineQueue } from 'millrace'
import { z } from 'zod'

const payload = z.object({ entity: z.string(), number: z.number().int() })
const basics = { owner: 'team', payload, handlerTimeoutMs: 1_000 }

export const stepQueue = defineQueue({ name: 'steps', ...basics })
export const newestQueue = defineQueue({ name: 'newest', ...basics })
