import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { ROOT } from '../source-files.ts'

test('millrace start that is stopped while its config file is loading says so, and ends with 0.', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-stopped-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const file = join(folder, 'millrace.config.mjs')
  writeFileSync(
    file,
    `process.stdout.write('loading\\n')\nawait new Promise((done) => setTimeout(done, 10_000))\n`,
  )
  const args = ['--conditions=millrace-source', join(ROOT, 'bin/millrace.js'), 'start']
  const child = spawn(process.execPath, [...args, '--config', file], { cwd: folder })
  t.after(() => child.kill('SIGKILL'))
  let said = ''
  const loading = new Promise<void>((resolve) => {
    child.stdout.on('data', (chunk: Buffer) => {
      said += String(chunk)
      if (said.includes('loading')) resolve()
    })
  })
  child.stderr.on('data', (chunk: Buffer) => {
    said += String(chunk)
  })
  await loading
  child.kill('SIGTERM')
  const [code, signal] = await once(child, 'close')
  assert.deepEqual([code, signal], [0, null], said)
  assert.match(said, /stopped while the config file was loading/)
})
