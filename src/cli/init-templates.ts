/** What `millrace init` writes. The tests run it as it is. */
export const configTemplate = `import { defineConfig } from 'millrace'
import { sqlite } from 'millrace/sqlite'
import { greet, greetings } from './greetings.ts'

export default defineConfig({
  transport: sqlite({ file: 'millrace.db' }),
  queues: [greetings],
  workers: [greet],
})
`

export const ignoredPaths: readonly string[] = [
  'node_modules/',
  'millrace.db',
  'millrace.db-wal',
  'millrace.db-shm',
]

const WITH_ZOD = `import { defineQueue, defineWorker } from 'millrace'
import { z } from 'zod'

const payload = z.object({ name: z.string().min(1) })
`

const BY_HAND = `import { defineQueue, defineWorker } from 'millrace'

interface Greeting {
  readonly name: string
}

/** Any Standard Schema fits (zod, valibot, arktype); this one is written by hand, so that nothing must be installed. */
const payload = {
  '~standard': {
    version: 1 as const,
    vendor: 'by-hand',
    types: undefined as { input: Greeting; output: Greeting } | undefined,
    validate: (value: unknown) =>
      isGreeting(value) ? { value } : { issues: [{ message: 'expected { "name": "…" }' }] },
  },
}

function isGreeting(value: unknown): value is Greeting {
  return typeof value === 'object' && value !== null && 'name' in value && typeof value.name === 'string'
}
`

const QUEUE_AND_WORKER = `
export const greetings = defineQueue({
  name: 'greetings',
  owner: 'me', // who watches the dead letters
  payload,
})

/** Throw to see a retry; throw a PermanentError to see a dead letter. */
export const greet = defineWorker(greetings, (message) => {
  console.log(\`hello \${message.payload.name} (attempt \${message.attempt})\`)
})
`

export function workerTemplate({ zod }: { readonly zod: boolean }): string {
  return `${zod ? WITH_ZOD : BY_HAND}${QUEUE_AND_WORKER}`
}
