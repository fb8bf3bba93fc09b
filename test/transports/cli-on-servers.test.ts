import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { type BackendName, backendUrl } from '../backends.ts'
import { type CliFolderOptions, cli, cliFolder } from './cli-folder.ts'
import { dropSchema } from './postgres-servers.ts'
import { withChannel } from './rabbitmq-subjects.ts'
import { until } from './until.ts'

const QUEUE = `cli-orders-${process.pid}`
const PREFIX = `cli-${process.pid}`

interface Subject extends Omit<CliFolderOptions, 'options'> {
  readonly backend: BackendName
  options(url: string): CliFolderOptions['options']
  /** What the doctor says beside that nothing is wrong. */
  readonly says?: RegExp
  readonly purges?: boolean
  readonly clear?: (url: string) => Promise<void>
}

const subjects: readonly Subject[] = [
  {
    transport: 'postgres',
    backend: 'postgres 18',
    options: (url) => ({ url, schema: PREFIX }),
    purges: true,
    clear: (url) => dropSchema(url, PREFIX),
  },
  {
    transport: 'redis',
    backend: 'redis 7',
    options: (url) => ({ url, prefix: PREFIX }),
    purges: true,
  },
  {
    transport: 'nats',
    backend: 'nats',
    options: (servers) => ({ servers, prefix: PREFIX }),
  },
  {
    transport: 'rabbitmq',
    backend: 'rabbitmq',
    options: (url) => ({ url }),
    withStore: true,
    clear: (url) => withChannel(url, async (channel) => void (await channel.deleteQueue(QUEUE))),
  },
  {
    transport: 'kafka',
    backend: 'kafka',
    options: (brokers) => ({ brokers, prefix: `${PREFIX}-`, retry: 'park', partitions: 2 }),
    withStore: true,
    says: /^topic ".*\.dead" for dead letters: 1 copy, /m,
  },
]

for (const subject of subjects) {
  const url = backendUrl(subject.backend)
  if (url === undefined) continue
  test(`The command line works on ${subject.transport}: start, send, stats, dlq ls, show, redrive, audit, purge and doctor.`, (t) =>
    fromAShell(t, subject, url))
}

async function fromAShell(t: TestContext, subject: Subject, url: string): Promise<void> {
  const { transport, withStore = false, says = /./, purges = false } = subject
  t.after(() => subject.clear?.(url))
  const cwd = await cliFolder(t, {
    ...{ transport, withStore, options: subject.options(url), queue: QUEUE },
  })
  const run = (...args: readonly string[]): Promise<string> => millrace(t, cwd, args)
  const stats = async () => JSON.parse(await run('stats', QUEUE, '--json'))

  const started = cli(t, cwd, ['start'])
  await started.says(new RegExp(`started: working on ${QUEUE}`))
  await run('send', QUEUE, '{"item":"lamp"}')
  await started.says(/packed lamp/)
  const id = (await run('send', QUEUE, '{"item":"piano"}')).trim()
  const isListed = async () => (await run('dlq', 'ls', QUEUE)).includes(id)
  await until('the dead letter', isListed, 60_000)
  const listed = await run('dlq', 'ls', QUEUE)
  assert.match(listed, new RegExp(`${id} .* permanent .*no piano in stock`))
  assert.match(await run('dlq', 'show', QUEUE, id), /^payload +{"item":"piano"}$/m)
  assert.equal((await stats()).dead, 1)
  await until('nothing to be left', async () => (await stats()).depth === 0, 60_000)

  await writeFile(join(cwd, 'piano'), '')
  await run('dlq', 'redrive', QUEUE, id)
  await started.says(/packed piano/)
  assert.equal((await stats()).dead, 0)
  assert.match(await run('dlq', 'audit', QUEUE), new RegExp(`redrive +${id}`))
  const store = withStore ? ', store: sqlite' : ''
  const doctor = await run('doctor')
  assert.match(doctor, new RegExp(`backend: ${transport}${store}[^]*nothing is wrong`))
  assert.match(doctor, says)
  started.kill('SIGTERM')
  assert.equal(await started.ended, 0)

  await run('send', QUEUE, '{"item":"lamp"}')
  const purging = cli(t, cwd, ['purge', QUEUE, '--yes'])
  assert.equal(await purging.ended, purges ? 0 : 1, purging.output())
  const refusal = `millrace: transport ${transport} cannot throw away what waits in a queue; `
  assert.ok(purging.output().startsWith(purges ? `purged ${QUEUE}: 1 removed` : refusal))
  assert.equal((await stats()).depth, purges ? 0 : 1)
}

/** What it says; it must end well. */
async function millrace(t: TestContext, cwd: string, args: readonly string[]): Promise<string> {
  const one = cli(t, cwd, args)
  assert.equal(await one.ended, 0, `millrace ${args.join(' ')}: ${one.output()}`)
  return one.output()
}
