import assert from 'node:assert/strict'
import { posix } from 'node:path'
import { test } from 'node:test'
import { importsOf, projectFiles, read } from './source-files.ts'

/** Folder of src/ to the folders that it may import; ARCHITECTURE.md draws the same. */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  model: [],
  transport: ['model'],
  blobs: ['model'],
  layers: ['model', 'transport', 'store', 'blobs'],
  store: ['model', 'transport'],
  stores: ['model', 'transport', 'store', 'sql', 'codec', 'redis'],
  sql: ['model'],
  codec: ['model'],
  redis: ['model', 'transport'],
  // A database that holds the queues is the store, too: `stores` for what opens it there.
  transports: ['model', 'transport', 'sql', 'codec', 'redis', 'store', 'stores'],
  inbox: ['model', 'transport', 'sql'],
  outbox: ['model', 'transport', 'sql'],
  versions: ['model', 'sql', 'codec', 'inbox/key.ts'],
  deadletters: ['model', 'transport'],
  flow: ['model', 'store', 'transport'],
  // An app holds its admin and a queue its codec, so these two stand below the runtime.
  admin: ['model', 'transport', 'deadletters', 'codec', 'flow'],
  runtime: [
    'model',
    'transport',
    'store',
    'layers',
    'blobs',
    'codec',
    'inbox',
    'outbox',
    'deadletters',
    'flow',
    'admin',
    'sql',
  ],
  testing: [
    'model',
    'transport',
    'layers',
    'runtime',
    'admin',
    'inbox',
    'outbox',
    'transports/memory',
  ],
  // `testing` for its seeded random numbers only; no runner and no backend.
  conformance: ['model', 'transport', 'store', 'layers', 'testing/seeded-random.ts'],
  http: ['model', 'runtime', 'admin', 'codec'],
  cli: ['model', 'runtime', 'admin', 'http', 'flow'],
  'index.ts': ['model', 'transport', 'codec', 'inbox', 'outbox', 'runtime', 'admin'],
}

/** Packages that a folder may name; all others need none. The clients of databases are optional peers. */
const PACKAGES: Readonly<Record<string, readonly string[]>> = {
  blobs: ['@aws-sdk/client-s3'],
  codec: ['@standard-schema/spec'],
  runtime: ['@standard-schema/spec'],
  sql: ['pg', 'postgres', 'better-sqlite3'],
  transports: [
    '@aws-sdk/client-sqs',
    '@nats-io/jetstream',
    '@nats-io/transport-node',
    '@platformatic/kafka',
    'amqplib',
  ],
  redis: ['@redis/client'],
}

interface Edge {
  readonly from: string
  readonly to: string
  readonly typeOnly: boolean
}

const sources = projectFiles(/^src\/.*\.ts$/)
const edges: readonly Edge[] = sources.flatMap((from) =>
  importsOf(read(from))
    .filter(({ specifier }) => specifier.startsWith('.'))
    .map(({ specifier, typeOnly }) => ({
      from,
      to: posix.join(posix.dirname(from), specifier),
      typeOnly,
    })),
)

test('There is something to check.', () => {
  assert.ok(sources.length > 50)
  assert.ok(edges.length > 200)
})

test('Every folder of src/ has a rule.', () => {
  const folders = new Set(sources.map(folderOf))
  assert.deepEqual(
    [...folders].filter((folder) => !(folder in MAY_IMPORT)),
    [],
  )
})

test('Files import only what their folder may import.', () => {
  const broken = edges.filter((edge) => !isAllowed(edge)).map(({ from, to }) => `${from} -> ${to}`)
  assert.deepEqual(broken, [])
})

test('A backend imports no other backend.', () => {
  const backend = (file: string): string | undefined =>
    /^src\/(?:transports|stores)\/([^/]+)\//.exec(file)?.[1]
  const broken = edges.filter(({ from, to }) => {
    const [one, other] = [backend(from), backend(to)]
    return one !== undefined && other !== undefined && one !== other
  })
  assert.deepEqual(broken, [])
})

test('Nothing but the command line and the root itself goes through the public root.', () => {
  const broken = edges.filter(({ to }) => to === 'src/index.ts')
  assert.deepEqual(broken, [])
})

test('Files that run import each other in no circle.', () => {
  const next = new Map<string, string[]>()
  for (const { from, to, typeOnly } of edges) {
    if (!typeOnly) next.set(from, [...(next.get(from) ?? []), to])
  }
  assert.deepEqual(circles(next), [])
})

test('Folders import each other in no circle, types included.', () => {
  const next = new Map<string, string[]>()
  for (const { from, to } of edges) {
    const [one, other] = [folderOf(from), folderOf(to)]
    if (one !== other) next.set(one, [...(next.get(one) ?? []), other])
  }
  assert.deepEqual(circles(next), [])
})

test('Every package that src/ imports is declared, and only where it may be named.', () => {
  const manifest: Readonly<Record<string, Record<string, string> | undefined>> = JSON.parse(
    read('package.json'),
  )
  const declared = { ...manifest.dependencies, ...manifest.peerDependencies }
  const broken = sources.flatMap((file) =>
    importsOf(read(file))
      .map(({ specifier }) => specifier)
      .filter((specifier) => !/^(\.|node:)/.test(specifier) && !isTemplate(file))
      .filter((name) => !(name in declared) || !PACKAGES[folderOf(file)]?.includes(name))
      .map((name) => `${file} -> ${name}`),
  )
  assert.deepEqual(broken, [])
})

test('Optional clients are loaded only when they are used.', () => {
  const broken = sources.flatMap((file) =>
    importsOf(read(file))
      .filter(({ specifier, typeOnly, dynamic }) => {
        const clients = Object.values(PACKAGES)
          .flat()
          .filter((name) => name !== '@standard-schema/spec')
        return clients.includes(specifier) && !typeOnly && !dynamic
      })
      .map(({ specifier }) => `${file} -> ${specifier}`),
  )
  assert.deepEqual(broken, [])
})

test('Only millrace/sqlite and what it opens loads node:sqlite, which older versions of Node lack.', () => {
  const users = sources.filter((file) =>
    importsOf(read(file)).some((one) => one.specifier === 'node:sqlite' && !one.typeOnly),
  )
  assert.deepEqual(users, ['src/sql/sqlite-open.ts'])
})

/** The texts of new projects hold imports that are not ours. */
function isTemplate(file: string): boolean {
  return file === 'src/cli/init-templates.ts'
}

function folderOf(file: string): string {
  return file.split('/')[1] ?? file
}

function isAllowed(edge: Edge): boolean {
  const { from, to } = edge
  const folder = folderOf(from)
  if (folder === folderOf(to)) return true
  const target = to.slice('src/'.length)
  return (MAY_IMPORT[folder] ?? []).some((may) => target === may || target.startsWith(`${may}/`))
}

/** The circles that a walk from every node meets, each as `a -> b -> a`. */
function circles(next: ReadonlyMap<string, readonly string[]>): readonly string[] {
  const found = new Set<string>()
  const done = new Set<string>()
  const walk = (node: string, path: readonly string[]): void => {
    const at = path.indexOf(node)
    if (at !== -1) found.add([...path.slice(at), node].join(' -> '))
    if (at !== -1 || done.has(node)) return
    for (const to of next.get(node) ?? []) walk(to, [...path, node])
    done.add(node)
  }
  for (const node of next.keys()) walk(node, [])
  return [...found]
}
