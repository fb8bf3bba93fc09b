import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdtemp, readdir, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { promisify } from 'node:util'
import { ROOT } from '../source-files.ts'

/** An empty project into which the packed package was installed, as a user would. */
export interface Installed {
  readonly folder: string
  /** Files in the tarball. */
  readonly files: readonly string[]
  /** What npm wrote to stderr when it installed the tarball. */
  readonly warnings: string
  run(file: string, args: readonly string[]): Promise<Ended>
  write(name: string, text: string): Promise<string>
  /** Makes a package of this repository visible to the project; harmless when repeated. */
  link(name: string): Promise<void>
  dispose(): Promise<void>
}

export interface Ended {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

export async function installPackage(): Promise<Installed> {
  const linked = new Set<string>()
  const folder = await mkdtemp(join(tmpdir(), 'millrace-package-'))
  const run = (file: string, args: readonly string[]): Promise<Ended> => runIn(folder, file, args)
  const must = async (file: string, args: readonly string[], cwd: string): Promise<Ended> => {
    const ended = await runIn(cwd, file, args)
    if (ended.code !== 0) throw new Error(`${file} ${args.join(' ')}: ${ended.stderr}`)
    return ended
  }
  await must('npm', ['pack', '--pack-destination', folder], ROOT)
  const tarball = (await readdir(folder)).find((name) => name.endsWith('.tgz')) ?? ''
  const listed = await must('tar', ['-tzf', tarball], folder)
  const manifest = { name: 'user', private: true, type: 'module' }
  await writeFile(join(folder, 'package.json'), JSON.stringify(manifest))
  const quiet = ['--no-audit', '--no-fund', '--prefer-offline']
  const install = (): Promise<Ended> => must('npm', ['install', ...quiet, `./${tarball}`], folder)
  const isThere = (): boolean => existsSync(join(folder, 'node_modules/millrace/package.json'))
  let installed = await install()
  // Seen once, beside other runs of npm: it ended with 0, and there was nothing.
  if (!isThere()) installed = await install()
  const { stdout, stderr: warnings } = installed
  if (!isThere()) throw new Error(`npm install ended with 0 and left nothing: ${stdout}${warnings}`)
  return {
    folder,
    warnings,
    files: listed.stdout
      .trim()
      .split('\n')
      .map((name) => name.replace(/^package\//, '')),
    run,
    async write(name, text) {
      const file = join(folder, name)
      await writeFile(file, text)
      return file
    },
    async link(name) {
      if (linked.has(name)) return
      linked.add(name)
      await symlink(join(ROOT, 'node_modules', name), join(folder, 'node_modules', name), 'dir')
    },
    dispose: () => rm(folder, { recursive: true, force: true }),
  }
}

const NOT_ENDED = 255

async function runIn(cwd: string, file: string, args: readonly string[]): Promise<Ended> {
  const options = { cwd, maxBuffer: 10_000_000, timeout: 180_000, env: userEnvironment() }
  try {
    return { code: 0, ...(await promisify(execFile)(file, [...args], options)) }
  } catch (error) {
    if (error instanceof Error && 'stdout' in error && 'stderr' in error && 'code' in error) {
      const { code, stdout, stderr } = error
      const ended = { stdout: String(stdout), stderr: String(stderr) }
      if (typeof code === 'number') return { ...ended, code }
      // A signal, the time limit or too much output ended it.
      return { ...ended, code: NOT_ENDED, stderr: `${ended.stderr}${error.message}` }
    }
    throw error
  }
}

/** Without what `npm test` and the test runner added for us; still with the Node of this repository. */
function userEnvironment(): NodeJS.ProcessEnv {
  const ours = /^(npm_|NODE_OPTIONS|NODE_TEST_CONTEXT|MILLRACE_)/
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !ours.test(name)))
}

/** A Node older than the package allows, outside of node_modules; undefined when the machine has none. */
export async function oldNode(): Promise<string | undefined> {
  const folders = (process.env.PATH ?? '').split(delimiter)
  for (const folder of folders.filter((one) => !one.includes('node_modules'))) {
    const node = join(folder, 'node')
    const said = await promisify(execFile)(node, ['--version']).catch(() => ({ stdout: '' }))
    const major = Number(/^v(\d+)\./.exec(said.stdout)?.[1])
    if (major < 22) return node
  }
  return undefined
}
