// Compiled, never run: each expected error fails the build once the mistake compiles.
import { defineQueue } from 'millrace'
import { z } from 'zod'

const base = {
  name: 'steps',
  owner: 'team-types',
  payload: z.object({ of: z.string(), at: z.string().transform((text) => new Date(text)) }),
}

export const right = [
  defineQueue(base),
  // The key function gets the output of the schema.
  defineQueue({ ...base, orderingKey: ({ at }) => at.toISOString(), onDead: 'continue' }),
  defineQueue({ ...base, orderingKey: ({ of }) => of, onDead: 'halt-key', delayed: 'wait' }),
]

export const wrong = [
  // @ts-expect-error what a death does is missing
  defineQueue({ ...base, orderingKey: ({ of }) => of }),
  // @ts-expect-error there is nothing to halt
  defineQueue({ ...base, onDead: 'halt-key' }),
  // @ts-expect-error a misspelt policy
  defineQueue({ ...base, orderingKey: ({ of }) => of, onDead: 'halt' }),
  // @ts-expect-error a field that the payload lacks
  defineQueue({ ...base, orderingKey: ({ from }) => from, onDead: 'continue' }),
]
