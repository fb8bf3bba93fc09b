import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { ROOT, read } from '../source-files.ts'
import { installPackage, oldNode } from './installed.ts'

interface Manifest {
  readonly version: string
  readonly engines: { readonly node: string }
  readonly exports: Readonly<Record<string, string | Readonly<Record<string, string>>>>
  readonly imports: Readonly<Record<string, Readonly<Record<string, string>>>>
  readonly bin: Readonly<Record<string, string>>
  readonly scripts: Readonly<Record<string, string>>
}

const manifest: Manifest = JSON.parse(read('package.json'))
const entries = Object.keys(manifest.exports)
  .filter((name) => name !== './package.json')
  .map((name) => name.replace(/^\./, 'millrace'))

const project = await installPackage()
after(() => project.dispose())

test('The packed package has every file that package.json points at, and nothing of our tests.', () => {
  const targets = [manifest.exports, manifest.imports, manifest.bin]
    .flatMap((map) => Object.values(map))
    .flatMap((value) => (typeof value === 'string' ? [value] : Object.values(value)))
    .map((path) => path.replace(/^\.\//, ''))
  assert.deepEqual(
    targets.filter((path) => !project.files.includes(path)),
    [],
  )
  for (const name of ['README.md', 'LICENSE', 'CHANGELOG.md']) {
    assert.ok(project.files.includes(name), name)
  }
  const ours = /^(test|bench|scripts|examples|\.)|\.tsbuildinfo$/
  assert.deepEqual(
    project.files.filter((file) => ours.test(file)),
    [],
  )
})

test('Whoever installs the package is warned of nothing.', () => {
  const warnings = project.warnings.split('\n').filter((line) => /^npm warn/i.test(line))
  assert.deepEqual(warnings, [])
})

test('A clone is built by npm ci and before npm pack, by scripts that never run where the package is installed.', () => {
  const { scripts } = manifest
  assert.equal(scripts.dependencies, scripts.build)
  assert.equal(scripts.prepack, scripts.build)
  // npm runs these, or warns of them, for a package that comes from a tarball or from git.
  const atInstall = ['preinstall', 'install', 'postinstall', 'prepare']
  assert.deepEqual(
    atInstall.filter((name) => name in scripts),
    [],
  )
})

test('The package brings next to nothing with it.', () => {
  const lock: { packages: Record<string, unknown> } = JSON.parse(
    readFileSync(join(project.folder, 'package-lock.json'), 'utf8'),
  )
  const names = Object.keys(lock.packages).filter((name) => name !== '')
  assert.deepEqual(names, ['node_modules/@standard-schema/spec', 'node_modules/millrace'])
})

for (const entry of entries) {
  test(`An empty project imports ${entry}.`, async () => {
    const text = `import * as all from '${entry}'\nconsole.log(Object.keys(all).length)`
    const file = await project.write('import.mjs', text)
    const { code, stdout, stderr } = await project.run('node', [file])
    assert.equal(stderr, '')
    assert.equal(code, 0)
    assert.ok(Number(stdout) > 0 || entry === 'millrace/transport', `${entry}: ${stdout}`)
  })
}

test('The package sends and works on SQLite.', async () => {
  const file = await project.write('work.mjs', WORK)
  const { stdout, stderr } = await project.run('node', ['--no-warnings', file])
  assert.equal(`${stdout}${stderr}`, 'attempt 1: hello\n')
})

/** Entries whose options are those of a client, so that whoever imports them has it. */
const TYPED_BY_CLIENT: Readonly<Record<string, string>> = {
  'millrace/kafka': '@platformatic',
  'millrace/nats': '@nats-io',
  'millrace/sqs': '@aws-sdk',
}

async function typeErrors(names: readonly string[], more: string): Promise<string> {
  await project.link('@types')
  await project.link('undici-types')
  const text = names.map((entry, i) => `export * as e${i} from '${entry}'`).join('\n')
  await project.write('types.ts', `${text}\n${more}`)
  const tsc = join(ROOT, 'node_modules/typescript/bin/tsc')
  const options = '--noEmit --strict --module nodenext --target es2024 --types node'.split(' ')
  const { stdout } = await project.run('node', [tsc, ...options, 'types.ts'])
  return stdout
}

test('The package has types for strict users without any client library.', async () => {
  const without = entries.filter((entry) => !(entry in TYPED_BY_CLIENT))
  assert.equal(await typeErrors(without, TYPED), '')
})

test('The package runs the command line.', async () => {
  const version = await project.run('npx', ['--no-install', 'millrace', '--version'])
  assert.equal(version.stdout.trim(), manifest.version)
  const help = await project.run('npx', ['--no-install', 'millrace', '--help'])
  assert.equal(help.code, 0)
  assert.match(help.stdout, /dlq/)
})

test('The package says in one line which client of Postgres is missing.', async () => {
  const file = await project.write('missing.mjs', MISSING)
  const { stdout } = await project.run('node', [file])
  assert.match(stdout, /^MILLRACE_MISSING_CLIENT .*npm install pg.*\n$/)
})

test('The package says in one line that an older Node is too old.', async (t) => {
  const node = await oldNode()
  if (node === undefined) {
    t.skip('no Node older than 22 on this machine')
    return
  }
  const bin = await project.run(node, ['node_modules/millrace/bin/millrace.js', 'stats'])
  assert.notEqual(bin.code, 0)
  assert.match(bin.stderr, /^millrace needs Node 22\.18 or newer, this is [\d.]+ .*\n$/)
  for (const entry of entries) {
    const text = `import('${entry}').catch((error) => console.log(error.code, error.message))`
    const { stdout } = await project.run(node, [await project.write('old.mjs', text)])
    assert.match(stdout, /^MILLRACE_UNSUPPORTED_NODE millrace needs Node 22\.18 or newer.*\n$/)
  }
})

// Node itself writes the lines around it for every error that nobody catches; a library must not end the process instead.
test('An older Node prints that line and nothing else of ours when nobody catches it.', async (t) => {
  const node = await oldNode()
  if (node === undefined) {
    t.skip('no Node older than 22 on this machine')
    return
  }
  const file = await project.write('uncaught.mjs', "import 'millrace'\nconsole.log('never')")
  const { code, stdout, stderr } = await project.run(node, [file])
  assert.deepEqual([code, stdout], [1, ''])
  assert.match(
    stderr,
    /\n\n\[?millrace needs Node 22\.18 or newer, this is [^\n]+\n\nNode\.js v\S+\n$/,
  )
})

test('The needed version of Node is the same in all three places.', () => {
  assert.equal(manifest.engines.node, '>=22.18')
  assert.match(read('bin/millrace.js'), /major < 22 \|\| \(major === 22 && minor < 18\)/)
  assert.match(read('src/model/node-version.ts'), /major: 22, minor: 18/)
})

test('Every entry checks the version of Node first.', () => {
  const sources = Object.values(manifest.exports).flatMap((target) =>
    typeof target === 'string' ? [] : [target['millrace-source'] ?? ''],
  )
  for (const source of sources) {
    assert.ok(existsSync(join(ROOT, source)), source)
    assert.match(read(source), /^import '[./]+\/model\/node-version\.ts'\n/, source)
  }
})

const QUEUE = `
import { createMillrace, defineQueue } from 'millrace'
const text = { '~standard': { version: 1, vendor: 'mine', validate: (value) => ({ value }) } }
const queue = defineQueue({ name: 'greetings', owner: 'team-package', payload: text })
`

const WORK = `${QUEUE}
import { sqlite } from 'millrace/sqlite'
const app = await createMillrace({ transport: sqlite({ file: 'work.db' }), queues: [queue] })
const done = Promise.withResolvers()
app.work(queue, (message) => {
  console.log(\`attempt \${message.attempt}: \${message.payload}\`)
  done.resolve()
})
await app.start()
await app.send(queue, 'hello')
await done.promise
await app.close()
`

const MISSING = `${QUEUE}
import { postgres } from 'millrace/postgres'
const transport = postgres({ url: 'postgres://127.0.0.1:1/none' })
createMillrace({ transport, queues: [queue] }).catch((error) => console.log(error.code, error.message))
`

const TYPED = `
import { defineQueue, type App } from 'millrace'
import type { StandardSchemaV1 } from '@standard-schema/spec'
declare const schema: StandardSchemaV1<{ n: number }, { n: number }>
declare const app: App
export const queue = defineQueue({ name: 'q', owner: 'o', payload: schema })
export const sent: Promise<{ id: string }> = app.send(queue, { n: 1 })
// @ts-expect-error wrong payload
app.send(queue, { n: 'one' })
`

for (const [entry, client] of Object.entries(TYPED_BY_CLIENT)) {
  test(`The package has types of ${entry} for strict users who have its client.`, async () => {
    assert.ok(entries.includes(entry))
    await project.link(client)
    // A client's own declarations may need what it does not bring (@platformatic/kafka: @types/debug).
    const ours = (await typeErrors([entry], ''))
      .split('\n')
      .filter((line) => line.includes('millrace/'))
    assert.deepEqual(ours, [])
  })
}
