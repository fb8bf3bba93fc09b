import { spawn } from 'node:child_process'
import { openSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { giveTo, serverAccount } from './account.ts'
import type { Started } from './backend.ts'
import { freePort, until, which } from './command.ts'
import { answers } from './postgres-server.ts'
import { privateFolder, removeFolder } from './private-folder.ts'

export const PGBOUNCER_COMMAND = 'apt-get install pgbouncer'

/** A PgBouncer in transaction mode in front of a server, with two server connections for everybody. */
export async function startPgBouncer(serverPort: number): Promise<Started> {
  const binary = await which('pgbouncer', ['/usr/sbin', '/usr/local/sbin'])
  if (binary === undefined) throw new Error('pgbouncer is not on PATH')
  const account = serverAccount()
  const folder = privateFolder(account)
  const port = await freePort()
  const config = writeConfig(folder, port, serverPort)
  for (const name of ['pgbouncer.ini', 'users.txt']) giveTo(account, join(folder, name))
  const output = openSync(join(folder, 'server.log'), 'a')
  const child = spawn(binary, [config], {
    detached: true,
    stdio: ['ignore', output, output],
    cwd: '/',
    ...account,
  })
  child.unref()
  // What `sweep` looks for after a run that was killed.
  if (child.pid !== undefined) writeFileSync(join(folder, 'server.pid'), String(child.pid))
  const gone = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  const stop = async (): Promise<void> => {
    if (child.exitCode === null) child.kill('SIGTERM')
    // SIGTERM waits for clients in newer versions and ends at once in older ones.
    const last = setTimeout(() => child.kill('SIGKILL'), 2_000)
    await gone
    clearTimeout(last)
    removeFolder(folder)
  }
  const url = `postgres://postgres@127.0.0.1:${port}/postgres`
  try {
    await until('pgbouncer answering', 10_000, () => answers(url))
  } catch (error) {
    await stop()
    throw error
  }
  return {
    report: { name: 'pgbouncer', available: true },
    env: { MILLRACE_TEST_PGBOUNCER_URL: url },
    stop,
  }
}

function writeConfig(folder: string, port: number, serverPort: number): string {
  const users = join(folder, 'users.txt')
  writeFileSync(users, '"postgres" ""\n')
  const config = join(folder, 'pgbouncer.ini')
  const lines = [
    '[databases]',
    `* = host=127.0.0.1 port=${serverPort}`,
    '[pgbouncer]',
    'listen_addr = 127.0.0.1',
    `listen_port = ${port}`,
    'unix_socket_dir =',
    'auth_type = trust',
    `auth_file = ${users}`,
    'pool_mode = transaction',
    'default_pool_size = 2',
    'max_client_conn = 300',
    'ignore_startup_parameters = extra_float_digits,options',
  ]
  writeFileSync(config, `${lines.join('\n')}\n`)
  return config
}
