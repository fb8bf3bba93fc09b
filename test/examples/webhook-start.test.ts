import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

test('a file that cannot be opened ends the example in one line, and nothing is left running', async () => {
  const child = spawn(
    process.execPath,
    [
      '--conditions=millrace-source',
      '--disable-warning=ExperimentalWarning',
      fileURLToPath(new URL('../../examples/webhook-delivery/main.ts', import.meta.url)),
      ...['--port', '46021', '--receiver-port', '46022', '--file', '/nonexistent/x.db'],
    ],
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
