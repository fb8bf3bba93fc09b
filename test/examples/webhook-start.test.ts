import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

const MAIN = fileURLToPath(new URL('../../examples/webhook-delivery/main.ts', import.meta.url))
const NODE = ['--conditions=millrace-source', '--disable-warning=ExperimentalWarning']

test('a file that cannot be opened ends the example in one line, and nothing is left running', async () => {
  const child = spawn(
    process.execPath,
    [...NODE, MAIN, ...['--port', '0', '--receiver-port', '0', '--file', '/nonexistent/x.db']],
    { stdio: ['ignore', 'ignore', 'pipe'], timeout: 30_000 },
  )
  let said = ''
  child.stderr.on('data', (chunk) => {
    said += String(chunk)
  })
  const [code] = await once(child, 'close')
  assert.equal(code, 1, 'it ended by itself')
  assert.match(said, /^webhook-delivery: .*\/nonexistent\/x\.db.*\n$/)
})

test('what is typed wrong ends with 2 and the usage, --help with 0', async () => {
  const cases: readonly (readonly [readonly string[], number, RegExp])[] = [
    [['--help'], 0, /^usage: npm start [\s\S]*--receiver-port/],
    [['--port', '70000'], 2, /^webhook-delivery: --port: expected a port .* got "70000"\nusage: /],
    [['--prt', '1'], 2, /^webhook-delivery: Unknown option '--prt'\nusage: /],
    [['--file', ''], 2, /^webhook-delivery: --file: expected/],
    [
      ['--transport', 'mysql://root:secret@db'],
      2,
      /^webhook-delivery: --transport: expected an address that begins with redis:\/\/(?!.*secret)/,
    ],
    [['x.db'], 2, /^webhook-delivery: Unexpected argument 'x.db'/],
  ]
  for (const [args, expectedCode, expected] of cases) {
    const ran = spawnSync(process.execPath, [...NODE, MAIN, ...args], {
      encoding: 'utf8',
      timeout: 30_000,
    })
    assert.match(`${ran.stdout}${ran.stderr}`, expected)
    assert.equal(ran.status, expectedCode)
  }
})
