import { existsSync } from 'node:fs'
import { basename, isAbsolute, relative, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { messageOfError } from '../model/describe-error.ts'
import { read, readString } from '../model/probe.ts'
import type { MillraceConfig } from '../runtime/config.ts'
import { oneLine } from './terminal-text.ts'
import { readTypeScriptAsModules } from './typescript-modules.ts'
import { UsageError } from './usage-error.ts'

const NAMES = ['ts', 'mts', 'js', 'mjs'].map((ending) => `millrace.config.${ending}`)

export interface LoadedConfig {
  readonly config: MillraceConfig
  /** As the user would write it. */
  readonly name: string
}

/** The config file of this folder, if there is one. */
export function findConfig(cwd: string): string | undefined {
  return NAMES.map((name) => resolve(cwd, name)).find((path) => existsSync(path))
}

/**
 * Imports the config file; TypeScript needs no build, because Node strips the types.
 * @throws UsageError: no such file, it cannot be read, or its default export is not what `defineConfig` takes.
 */
export async function loadConfig(cwd: string, given: string | undefined): Promise<LoadedConfig> {
  const path = given === undefined ? findConfig(cwd) : resolve(cwd, given)
  if (path === undefined) {
    throw new UsageError(
      'no millrace.config.ts (or .mts, .js, .mjs) in this folder; run `millrace init`, or name one with --config',
    )
  }
  const name = shortName(cwd, path)
  if (!existsSync(path)) throw new UsageError(`config file ${name} does not exist`)
  const loaded = await importFile(path, name)
  return { config: checkConfig(read(loaded, 'default'), name), name }
}

function shortName(cwd: string, path: string): string {
  const short = relative(cwd, path)
  return short === '' || short.startsWith('..') || isAbsolute(short) ? path : short
}

async function importFile(path: string, name: string): Promise<unknown> {
  readTypeScriptAsModules()
  try {
    return await import(pathToFileURL(path).href)
  } catch (cause) {
    throw new UsageError(explain(cause, name), { cause })
  }
}

function explain(cause: unknown, name: string): string {
  const message = oneLine(messageOfError(cause))
  const code = readString(cause, 'code')
  if (code === 'ERR_MODULE_NOT_FOUND') {
    const missing = /Cannot find (?:package|module) '([^']+)'/.exec(message)?.[1]
    if (missing !== undefined) {
      const what = missing.startsWith('/') ? basename(missing) : missing
      return `config file ${name} imports ${JSON.stringify(what)}, which is not there; install it or correct the path`
    }
  }
  if (isSyntaxError(cause)) {
    const place = placeOf(cause)
    // For TypeScript Node says where, for JavaScript only when nobody catches the error.
    const hint = place === undefined ? `; \`node --check ${name}\` shows where` : ''
    return `config file ${name} has a syntax error${place === undefined ? '' : ` (${place})`}: ${message}${hint}`
  }
  return `config file ${name} failed when it was loaded: ${message}`
}

function isSyntaxError(cause: unknown): boolean {
  return (
    readString(cause, 'name') === 'SyntaxError' ||
    readString(cause, 'code')?.includes('TYPESCRIPT_SYNTAX') === true
  )
}

/** Node writes `file:///…/a.ts:3` above the source line. */
function placeOf(cause: unknown): string | undefined {
  const [, file, line] =
    /^(?:file:\/\/)?(\/[^\n]*?):(\d+)$/m.exec(readString(cause, 'stack') ?? '') ?? []
  return file === undefined ? undefined : `${basename(file)}:${line}`
}

function checkConfig(value: unknown, name: string): MillraceConfig {
  if (value === undefined) {
    throw new UsageError(
      `config file ${name} has no default export; write \`export default defineConfig({ transport, queues })\``,
    )
  }
  const problems = problemsOf(value)
  if (problems.length > 0) {
    throw new UsageError(
      `config file ${name}: its default export is not what defineConfig takes: ${problems.join('; ')}`,
    )
  }
  // Checked right above; the rest is checked by createMillrace.
  return value as MillraceConfig
}

function problemsOf(value: unknown): readonly string[] {
  if (typeof value !== 'object' || value === null)
    return [`expected an object, got ${typeof value}`]
  const problems: string[] = []
  if (typeof read(read(value, 'transport'), 'connect') !== 'function') {
    problems.push('transport: expected what sqlite(…), postgres(…) or memory() gives')
  }
  const queues = read(value, 'queues')
  if (!Array.isArray(queues) || queues.length === 0 || !queues.every(isNamed)) {
    problems.push('queues: expected a list of what defineQueue gives')
  }
  const workers = read(value, 'workers')
  if (workers !== undefined && (!Array.isArray(workers) || !workers.every(isWorker))) {
    problems.push('workers: expected a list of { queue, handler } (defineWorker)')
  }
  return problems
}

function isNamed(queue: unknown): boolean {
  return readString(queue, 'name') !== undefined && read(queue, 'schema') !== undefined
}

function isWorker(worker: unknown): boolean {
  return isNamed(read(worker, 'queue')) && typeof read(worker, 'handler') === 'function'
}
