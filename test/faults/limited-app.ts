import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import { type App, type Connector, createMillrace, defineQueue, silentLogger } from 'millrace'
import { postgres } from 'millrace/postgres'
import { redis } from 'millrace/redis'
import { sqlite } from 'millrace/sqlite'
import { z } from 'zod'

/** Where the limited queue is; travels to the child processes as JSON. The transport is the store. */
export type LimitedPlace = { readonly recordFile: string } & (
  | { readonly kind: 'sqlite'; readonly file: string }
  | { readonly kind: 'postgres'; readonly url: string; readonly schema: string }
  | { readonly kind: 'redis'; readonly url: string; readonly prefix: string }
)

export const MAX = 5
export const MAX_PER_KEY = 2
const HANDLER_TIMEOUT_MS = 1_000
/** By its own clock (handlerTimeoutMs and the grace), and when the store gives it to others. */
export const OWN_MS: number = HANDLER_TIMEOUT_MS + 5_000
export const SLOT_ENDS_MS = 11_600

/** In such steps a handler does its work. */
export const STEP_MS = 25

export const limited = defineQueue({
  name: 'limited',
  owner: 'team-chaos',
  payload: z.object({ n: z.number(), tenant: z.string(), takesMs: z.number() }),
  handlerTimeoutMs: HANDLER_TIMEOUT_MS,
  retry: { attempts: 20, baseMs: 50, maxMs: 200 },
  capacity: 'unbounded',
  concurrencyLimit: { max: MAX, perKey: { key: ({ tenant }) => tenant, max: MAX_PER_KEY } },
})

export function openLimited(place: LimitedPlace): Promise<App> {
  const options = { transport: connectorOf(place), queues: [limited], logger: silentLogger }
  return createMillrace(options)
}

function connectorOf(place: LimitedPlace): Connector {
  switch (place.kind) {
    case 'sqlite':
      return sqlite({ file: place.file, pollMs: 50 })
    case 'postgres':
      return postgres({ url: place.url, schema: place.schema, pollMs: 50 })
    case 'redis':
      return redis({ url: place.url, prefix: place.prefix, group: 'shop', pollMs: 50 })
  }
}

/** What a handler wrote down before it could die. `told`: its signal fired, for this reason. */
export interface RunEvent {
  readonly pid: number
  readonly run: string
  readonly at: number
  readonly what: 'begin' | 'end' | 'told'
  readonly n: number
  readonly tenant: string
  readonly code?: string
}

/** One line is one write of less than a page, so lines of several processes do not mix (O_APPEND). */
export function note(file: string, event: RunEvent): void {
  appendFileSync(file, `${JSON.stringify(event)}\n`)
}

export function noted(file: string): readonly RunEvent[] {
  if (!existsSync(file)) return []
  const lines = readFileSync(file, 'utf8').split('\n').filter(Boolean)
  return lines.map((line): RunEvent => JSON.parse(line))
}
