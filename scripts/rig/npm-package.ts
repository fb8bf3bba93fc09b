import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { thrice } from './cache.ts'
import { run } from './command.ts'

const HERE = import.meta.dirname

export const INSTALL_COMMAND = 'npm ci --prefix scripts/rig'

/** The folder of a package that package.json here lists, installed when it is not there yet. */
export async function npmPackage(name: string): Promise<string> {
  installed ??= installMissing()
  await installed
  const folder = join(HERE, 'node_modules', name)
  if (!existsSync(folder)) throw new Error(`${INSTALL_COMMAND} did not bring ${name}`)
  return folder
}

let installed: Promise<void> | undefined

/** Once for all that ask, and before any of them runs: an installation takes away what is there. */
async function installMissing(): Promise<void> {
  if (listed().every((name) => existsSync(join(HERE, 'node_modules', name)))) return
  const quiet = ['--ignore-scripts', '--no-audit', '--no-fund']
  await thrice(() => run('npm', ['ci', ...quiet, '--prefix', HERE], { cwd: HERE }))
}

/** What is for this machine; the names of the others end with theirs. */
function listed(): readonly string[] {
  const manifest: { optionalDependencies: Readonly<Record<string, string>> } = JSON.parse(
    readFileSync(join(HERE, 'package.json'), 'utf8'),
  )
  const here = `-${process.platform}-${process.arch}`
  return Object.keys(manifest.optionalDependencies).filter(
    (name) => name.endsWith(here) || !/-(?:linux|darwin|win32)-/.test(name),
  )
}
