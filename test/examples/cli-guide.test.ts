import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { main } from '../../src/cli/main.ts'
import { type Project, project } from '../unit/cli-project.ts'
import { root } from './child.ts'

const guide = await readFile(join(root, 'docs/guide/cli.md'), 'utf8')

interface Run {
  readonly command: string
  readonly expected: string
}

const runs: readonly Run[] = blocks('console').flatMap((block) =>
  block
    .split(/^\$ npx millrace /m)
    .slice(1)
    .map((text) => {
      const end = text.indexOf('\n')
      return { command: text.slice(0, end), expected: text.slice(end + 1) }
    }),
)

test('every command of the guide prints what the guide says', async (t) => {
  const shop = await project(t)
  await shop.write('millrace.config.ts', blocks('ts')[0] ?? '')
  const cwd = process.cwd()
  // The config names its database relative to the current folder.
  process.chdir(shop.folder)
  t.after(() => process.chdir(cwd))
  assert.ok(runs.length > 20)
  const ids = new Map<string, string>()
  for (const { command, expected } of runs) {
    const args = words(command).map((word) => ids.get(word) ?? word)
    const said =
      command === 'start' ? await start(shop, lines(expected, '^C')) : await once(shop, args)
    learn(ids, expected, said)
    assert.equal(masked(said), masked(expected.replace('^C\n', '')), command)
  }
})

test('the guide leaves no command out', async () => {
  const { commands } = await import('../../src/cli/commands/index.ts')
  const missing = commands.filter(
    ({ name }) => !runs.some(({ command }) => command.startsWith(name)),
  )
  assert.deepEqual(missing, [])
})

function blocks(language: string): readonly string[] {
  const fence = new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\``, 'gm')
  return [...guide.matchAll(fence)].map(([, text = '']) => text)
}

function words(command: string): readonly string[] {
  return [...command.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, bare]) => quoted ?? bare ?? '')
}

/** Lines before the one that is a mark. */
function lines(text: string, mark: string): number {
  return text.split('\n').indexOf(mark)
}

async function once(shop: Project, args: readonly string[]): Promise<string> {
  const { stdout, stderr } = await shop.run(...args)
  return `${stdout}${stderr}`
}

/** Interrupts when it has printed as many lines as the guide shows before the ^C. */
async function start(shop: Project, linesBefore: number): Promise<string> {
  const stop = new AbortController()
  let said = ''
  const hear = (text: string): void => {
    said += text
    if (said.split('\n').length > linesBefore) stop.abort()
  }
  const sink = { write: hear }
  await main(['start'], {
    stdout: sink,
    stderr: sink,
    env: {},
    cwd: shop.folder,
    signal: stop.signal,
  })
  return said
}

const ID = /[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}/g

/** Ids of the guide, in the order in which they appear, are those of this run. */
function learn(ids: Map<string, string>, expected: string, said: string): void {
  const real = said.match(ID) ?? []
  for (const [i, id] of (expected.match(ID) ?? []).entries()) ids.set(id, real[i] ?? '')
}

/** Without what differs from run to run: ids, times, ages, and the columns that they widen. */
function masked(text: string): string {
  return text
    .replace(ID, 'ID')
    .replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'TIME')
    .replace(/(\d) {2}\d+(?:\.\d)? m?s {2}no/g, '$1  AGE  no')
    .replace(/ {2,}/g, '  ')
}
