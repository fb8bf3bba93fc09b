import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Backend } from './backend.ts'
import { freePort } from './command.ts'
import { INSTALL_COMMAND, npmPackage } from './npm-package.ts'
import { startServer } from './private-server.ts'
import { type SqsServer, sqsAnswers, sqsBackend } from './sqs-server.ts'

export async function startFauxqs(): Promise<SqsServer> {
  const home = await npmPackage('fauxqs')
  const manifest: { version: string } = JSON.parse(readFileSync(join(home, 'package.json'), 'utf8'))
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const server = await startServer({
    name: `fauxqs on port ${port}`,
    file: process.execPath,
    args: () => [join(import.meta.dirname, 'fauxqs-main.ts'), join(home, 'dist'), String(port)],
    answers: () => sqsAnswers(url),
  })
  return { ...server, url, port, version: manifest.version }
}

export const FAUXQS_BACKEND: Backend = sqsBackend(
  'sqs fauxqs',
  'MILLRACE_TEST_SQS_FAUXQS_URL',
  INSTALL_COMMAND,
  startFauxqs,
)
