import { existsSync } from 'node:fs'
import { basename, isAbsolute, relative, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { messageOfError } from '../model/describe-error.ts'
import { MillraceError } from '../model/errors.ts'
import { read, readString } from '../model/probe.ts'
import type { MillraceConfig } from '../runtime/config.ts'
import { checkConfig } from './check-config.ts'
import { oneLine } from './terminal-text.ts'
import { readTypeScriptAsModules } from './typescript-modules.ts'

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
 * @throws MILLRACE_CONFIG: no such file, or it cannot be read.
 * @throws MILLRACE_INVALID_OPTIONS: its default export is not what `defineConfig` takes; with every problem at once.
 */
export async function loadConfig(cwd: string, given: string | undefined): Promise<LoadedConfig> {
  const path = given === undefined ? findConfig(cwd) : resolve(cwd, given)
  if (path === undefined) {
    throw unusable(
      'no millrace.config.ts (or .mts, .js, .mjs) in this folder; run `millrace init`, or name one with --config',
    )
  }
  const name = shortName(cwd, path)
  if (!existsSync(path)) throw unusable(`config file ${name} does not exist`)
  const loaded = await importFile(path, name)
  const config = read(loaded, 'default')
  if (config === undefined) {
    throw unusable(
      `config file ${name} has no default export; write \`export default defineConfig({ transport, queues })\``,
    )
  }
  return { config: checkConfig(config, name), name }
}

function unusable(why: string, cause?: unknown): MillraceError {
  return new MillraceError('MILLRACE_CONFIG', why, { cause })
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
    throw unusable(explain(cause, name), cause)
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
