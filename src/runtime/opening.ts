import { bucketRefusal } from '../model/bucket-refusal.ts'
import { classifyError } from '../model/classify-error.ts'
import type { Clock } from '../model/clock.ts'
import { isMillraceError, MillraceError } from '../model/errors.ts'
import { read, readString } from '../model/probe.ts'
import { show } from '../model/problems.ts'
import { tlsRefusal } from '../model/tls-refusal.ts'
import { pgRefusal } from '../sql/pg-refusal.ts'
import type { ConnectContext } from '../transport/transport.ts'
import type { ResolvedOptions } from './millrace-options.ts'
import { type Refusals, refusals } from './refusals.ts'

const CONNECT_MAX_MS = 30_000
/** Who has written a wrong option need not wait long for what else is wrong. */
const LOOK_MAX_MS = 5_000

interface Part {
  close(): Promise<void>
}

/** One start-up: what is open so far, and what was refused. */
export interface Opening {
  readonly refused: Refusals
  readonly signal: AbortSignal
  /** Undefined when there is none, or when it was refused. `option`: where the user named it. */
  open<C extends { readonly name: string }, P extends Part>(
    option: string,
    connector: C | undefined,
    connect: (connector: C, context: ConnectContext) => Promise<P>,
  ): Promise<P | undefined>
  keep<P extends Part>(part: P): P
  closeAll(): Promise<void>
  /** Its time is no longer limited. */
  over(): void
}

/** `found`: what is refused already. */
export function openingOf(resolved: ResolvedOptions, found: readonly string[]): Opening {
  const refused = refusals(found)
  const { signal, cancel } = connectLimit(
    resolved.clock,
    refused.any() ? LOOK_MAX_MS : CONNECT_MAX_MS,
  )
  const opened: Part[] = []
  const keep: Opening['keep'] = (part) => {
    opened.push(part)
    return part
  }
  return {
    refused,
    signal,
    keep,
    open: async (option, connector, connect) => {
      // One that is none was refused with the options.
      if (typeof read(connector, 'connect') !== 'function' || connector === undefined) return
      const migrate = refused.any() ? 'check' : resolved.migrate
      const context = { ...resolved, migrate, signal }
      const { name } = connector
      // Where it may be brought up to date, and is not now because of another refusal, nothing is wrong with it.
      const unless = migrate === resolved.migrate ? undefined : 'MILLRACE_SCHEMA_OUTDATED'
      const part = await refused.of(
        `${option} ${name}`,
        () => answered(name, connect(connector, context)),
        { unless },
      )
      return part && keep(part)
    },
    over: cancel,
    closeAll: async () => {
      for (const part of opened.reverse()) await part.close().catch(() => undefined)
    },
  }
}

function connectLimit(
  clock: Clock,
  ms: number,
): { readonly signal: AbortSignal; readonly cancel: () => void } {
  const limit = new AbortController()
  const text = `no connection within ${ms} ms; is the backend up?`
  const cancel = clock.after(ms, () =>
    limit.abort(new MillraceError('MILLRACE_UNAVAILABLE', text, { retryable: true })),
  )
  return { signal: limit.signal, cancel }
}

/** Of the certificates that an address or an option names, for one. A socket that is not there is not opened but connected to. */
function fileRefusal(cause: unknown, name: string): MillraceError | undefined {
  const [path, code] = [readString(cause, 'path'), readString(cause, 'code')]
  if (path === undefined || readString(cause, 'syscall') !== 'open') return undefined
  return new MillraceError(
    'MILLRACE_UNAVAILABLE',
    `${name}: the file ${show(path)} cannot be read (${code}); correct its name in the address or the options`,
    { cause },
  )
}

/** Times inside the error do not matter here: nothing waits for them. */
const NO_TIME = 0

/** What a client throws when it cannot connect says little; a user needs to know what could not be opened. */
export async function answered<T>(name: string, opened: Promise<T>): Promise<T> {
  try {
    return await opened
  } catch (cause) {
    const insecure = tlsRefusal(cause, name)
    if (insecure !== undefined) throw insecure
    if (isMillraceError(cause)) throw cause
    const refusal = pgRefusal(cause, name)
    if (refusal !== undefined) throw refusal
    const fileless = fileRefusal(cause, name)
    if (fileless !== undefined) throw fileless
    const bucketless = bucketRefusal(cause, name)
    if (bucketless !== undefined) throw bucketless
    const { code, errorClass } = classifyError(cause, undefined, NO_TIME)
    const why = cause instanceof Error && cause.message !== '' ? `${code}: ${cause.message}` : code
    throw new MillraceError(
      'MILLRACE_UNAVAILABLE',
      `${name} cannot be opened (${why}); check that it runs and that address and account are right`,
      { cause, retryable: errorClass !== 'permanent' },
    )
  }
}
