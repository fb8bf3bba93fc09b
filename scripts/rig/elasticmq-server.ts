import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Backend } from './backend.ts'
import { freePort } from './command.ts'
import { JAVA_COMMAND, javaProgram } from './maven.ts'
import { startServer } from './private-server.ts'
import { type SqsServer, sqsAnswers, sqsBackend } from './sqs-server.ts'

/** Shorter to start, and small. */
const JVM = ['-Xms32m', '-Xmx256m', '-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1']

export async function startElasticmq(): Promise<SqsServer> {
  const { java, classPath, version } = await javaProgram('elasticmq-1.7.1', 'elasticmq-server_2.13')
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const main = 'org.elasticmq.server.Main'
  const configIn = (folder: string): string => join(folder, 'elasticmq.conf')
  const server = await startServer({
    name: `elasticmq on port ${port}`,
    file: java,
    prepare: (folder) => writeFileSync(configIn(folder), config(port)),
    args: (folder) => [...JVM, `-Dconfig.file=${configIn(folder)}`, '-cp', classPath, main],
    answers: () => sqsAnswers(url),
  })
  return { ...server, url, port, version }
}

function config(port: number): string {
  const at = `host = "127.0.0.1", port = ${port}`
  const bound = `bind-port = ${port}, bind-hostname = "127.0.0.1"`
  const lines = [
    'include classpath("application.conf")',
    `node-address { protocol = http, ${at}, context-path = "" }`,
    `rest-sqs { enabled = true, ${bound}, sqs-limits = strict }`,
    'rest-stats { enabled = false }',
    'aws { region = us-east-1, accountId = 000000000000 }',
  ]
  return `${lines.join('\n')}\n`
}

export const ELASTICMQ_BACKEND: Backend = sqsBackend(
  'sqs elasticmq',
  'MILLRACE_TEST_SQS_ELASTICMQ_URL',
  JAVA_COMMAND,
  startElasticmq,
)
