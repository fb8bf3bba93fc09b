// Compiled, never run: each expected error fails the build once the mistake compiles.
import { defineQueue } from 'millrace'
import { z } from 'zod'

const base = {
  name: 'reports',
  owner: 'team-types',
  payload: z.object({ tenant: z.string(), at: z.string().transform((text) => new Date(text)) }),
}

export const right = [
  defineQueue({ ...base, concurrencyLimit: { max: 5 } }),
  // The key function gets the output of the schema.
  defineQueue({
    ...base,
    concurrencyLimit: { perKey: { key: ({ at }) => at.toISOString(), max: 1 }, scope: 'process' },
  }),
]

export const wrong = [
  // @ts-expect-error how many in one process is an option of work()
  defineQueue({ ...base, concurrencyLimit: 5 }),
  // @ts-expect-error a key without its limit
  defineQueue({ ...base, concurrencyLimit: { perKey: { key: ({ tenant }) => tenant } } }),
  // @ts-expect-error a field that the payload lacks
  defineQueue({ ...base, concurrencyLimit: { perKey: { key: ({ from }) => from, max: 1 } } }),
]
