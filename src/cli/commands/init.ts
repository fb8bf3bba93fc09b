import { appendFile, readFile, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { relative, resolve } from 'node:path'
import { messageOfError } from '../../model/describe-error.ts'
import { MillraceError } from '../../model/errors.ts'
import type { Command } from '../command.ts'
import { DONE, type ExitCode } from '../exit-code.ts'
import { configTemplate, ignoredPaths, workerTemplate } from '../init-templates.ts'
import { findConfig } from '../load-config.ts'
import { UsageError } from '../usage-error.ts'

export const init: Command = {
  name: 'init',
  summary: 'write a config file and a first worker into this folder',
  operands: '',
  minOperands: 0,
  maxOperands: 0,
  options: {},
  notes: ['Writes millrace.config.ts, greetings.ts and lines of .gitignore; overwrites nothing.'],
  run: async (call): Promise<ExitCode> => {
    const { cwd } = call.io
    const existing = findConfig(cwd)
    if (existing !== undefined) {
      throw new UsageError(`${relative(cwd, existing)} is there already; nothing was written`)
    }
    const written = [
      ...(await writeNew(cwd, 'greetings.ts', workerTemplate({ zod: isInstalled(cwd, 'zod') }))),
      ...(await writeNew(cwd, 'millrace.config.ts', configTemplate)),
      ...(await addLines(cwd, '.gitignore', ignoredPaths)),
    ]
    const next = [
      ...(isInstalled(cwd, 'millrace') ? [] : ['npm install millrace']),
      'npx millrace start',
      `npx millrace send greetings '{"name":"Ada"}'`,
      'npx millrace stats',
    ]
    if (call.out.json) {
      call.out.data({ written, next })
      return DONE
    }
    for (const name of written) call.out.line(`wrote ${name}`)
    call.out.line('')
    call.out.line('Next, the last two in another terminal:')
    for (const line of next) call.out.line(`  ${line}`)
    return DONE
  },
}

/** The name when it was written; what exists stays as it is, and that is an error: the config would not fit it. */
async function writeNew(cwd: string, name: string, text: string): Promise<readonly string[]> {
  try {
    await writeFile(resolve(cwd, name), text, { flag: 'wx' })
    return [name]
  } catch (cause) {
    if (!isExisting(cause)) throw unwritable(name, cause)
    throw new UsageError(
      `${name} is there already; move it, or write a millrace.config.ts by hand`,
      { cause },
    )
  }
}

function unwritable(name: string, cause: unknown): MillraceError {
  return new MillraceError(
    'MILLRACE_DENIED',
    `${name} cannot be written: ${messageOfError(cause)}`,
    { cause },
  )
}

function isExisting(cause: unknown): boolean {
  return cause instanceof Error && 'code' in cause && cause.code === 'EEXIST'
}

async function addLines(
  cwd: string,
  name: string,
  lines: readonly string[],
): Promise<readonly string[]> {
  const path = resolve(cwd, name)
  const before = await readFile(path, 'utf8').catch(() => '')
  const known = new Set(before.split(/\r?\n/).map((line) => line.trim()))
  const missing = lines.filter((line) => !known.has(line))
  if (missing.length === 0) return []
  const gap = before === '' || before.endsWith('\n') ? '' : '\n'
  await appendFile(path, `${gap}${missing.join('\n')}\n`).catch((cause: unknown) => {
    throw unwritable(name, cause)
  })
  return [name]
}

function isInstalled(cwd: string, name: string): boolean {
  try {
    createRequire(resolve(cwd, 'anything.js')).resolve(`${name}/package.json`)
    return true
  } catch {
    return false
  }
}
