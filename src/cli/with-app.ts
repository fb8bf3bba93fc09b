import { silentLogger } from '../model/logger.ts'
import { nearest } from '../model/nearest.ts'
import type { App } from '../runtime/app.ts'
import type { MillraceConfig } from '../runtime/config.ts'
import type { MillraceOptions } from '../runtime/create.ts'
import { createMillrace } from '../runtime/create-millrace.ts'
import type { AnyQueue } from '../runtime/queue.ts'
import type { Call } from './command.ts'
import { type LoadedConfig, loadConfig } from './load-config.ts'
import { UsageError } from './usage-error.ts'

/** An app that was opened to act once; its workers never start. */
export interface OpenApp extends LoadedConfig {
  readonly app: App
}

/** `auto` does what the config says; `always` migrates whatever it says (`millrace migrate`). */
export type SchemaMode = 'auto' | 'always' | 'check'

/**
 * Opens the config's app, acts, closes. `check` is for everything that only looks or acts on what is there: it must not
 * change a schema that running workers rely on. `send` may be the first to use a database, so it brings its own.
 * `storeOf`: for who opens more than the app would.
 */
export async function withApp<T>(
  call: Call,
  migrate: SchemaMode,
  act: (open: OpenApp) => Promise<T>,
  storeOf: StoreOf = ({ store }) => store,
): Promise<T> {
  const loaded = await loadConfig(call.io.cwd, call.value('config'))
  remarkOnMemory(loaded, call)
  const app = await createMillrace(optionsForActing(loaded, migrate, storeOf))
  try {
    return await act({ ...loaded, app })
  } finally {
    await app.close({ timeoutMs: 0 })
  }
}

type StoreOf = (config: MillraceConfig) => MillraceConfig['store']

function optionsForActing(
  { config }: LoadedConfig,
  migrate: SchemaMode,
  storeOf: StoreOf,
): MillraceOptions {
  const { workers: _workers, intake: _intake, onDeadLetter: _onDeadLetter, ...options } = config
  const store = storeOf(config)
  return {
    ...options,
    ...(store && { store }),
    logger: silentLogger,
    signals: false,
    migrate:
      migrate === 'auto' ? (config.migrate ?? 'auto') : migrate === 'always' ? 'auto' : 'check',
  }
}

function remarkOnMemory({ config, name }: LoadedConfig, call: Call): void {
  if (config.transport.name !== 'memory') return
  call.out.note(
    `millrace: ${name} uses the memory transport, which lives in one process: this command sees no message of another one`,
  )
}

/** @throws UsageError with the nearest known name. */
export function queueNamed({ config, name }: LoadedConfig, wanted: string): AnyQueue {
  const found = config.queues.find((queue) => queue.name === wanted)
  if (found !== undefined) return found
  const names = config.queues.map((queue) => queue.name)
  const near = nearest(wanted, names)
  const hint =
    near === undefined ? `it has ${names.slice(0, 10).join(', ')}` : `did you mean "${near}"?`
  throw new UsageError(`${name} has no queue ${JSON.stringify(wanted)}; ${hint}`)
}
