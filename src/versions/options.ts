import { problems } from '../model/problems.ts'
import { checkSchemaName } from '../sql/pg-name.ts'

/** The queue, by its definition: the types of `key` and `version` come from it. */
export interface VersionedQueue<Payload> {
  readonly name: string
  /** Only its type is read. */
  readonly schema: {
    readonly '~standard': { readonly types?: { readonly output: Payload } | undefined }
  }
}

export interface VersionOptions<Payload> {
  /** The queue whose messages carry versions. */
  readonly queue: VersionedQueue<Payload>
  /** What the version counts for: an account, a product. */
  readonly key: (payload: Payload) => string
  /** Grows with each change of a key: a counter, or epoch ms. An integer up to 2^53 - 1, or a bigint of 64 bits. */
  readonly version: (payload: Payload) => number | bigint
  /** Postgres: the schema of postgresInbox. Default `millrace`. */
  readonly schema?: string
}

/** @throws MILLRACE_INVALID_OPTIONS, all problems at once */
export function checkVersionOptions<Payload>(
  name: string,
  options: VersionOptions<Payload>,
  known: readonly string[] = [],
  more: readonly string[] = [],
): void {
  const found = problems(name)
  found.knownKeys(options, ['queue', 'key', 'version', 'schema', ...known])
  if (typeof options?.queue?.name !== 'string') {
    found.add('queue: expected the definition that defineQueue made')
  }
  for (const wanted of ['key', 'version'] as const) {
    if (typeof options?.[wanted] !== 'function') {
      found.add(`${wanted}: expected a function of the payload`)
    }
  }
  for (const problem of more) found.add(problem)
  found.throwIfAny()
  checkSchemaName(options.schema ?? 'millrace')
}
