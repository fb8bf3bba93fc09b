import { join } from 'node:path'
import { cached } from './cache.ts'
import { run, which } from './command.ts'

export interface NatsBinary {
  readonly file: string
  /** `2.15.2`. */
  readonly version: string
}

const VERSION = 'v2.15.2'
const MODULE = `github.com/nats-io/nats-server/v2@${VERSION}`
/** Under a minute on two cores, several where the machine is busy. */
const BUILD_MS = 600_000

export const NATS_COMMAND = `go install ${MODULE}, or apt-get install nats-server (older)`

/** A new one on PATH, else one built by Go, else an older one on PATH. */
export async function natsBinary(): Promise<NatsBinary> {
  const onPath = await which('nats-server', ['/usr/sbin', '/usr/local/bin'])
  const found = onPath === undefined ? undefined : await versionOf(onPath)
  if (found !== undefined && isNew(found)) return found
  try {
    const folder = await cached(`nats-server-${VERSION}-${process.platform}-${process.arch}`, build)
    return await versionOf(join(folder, 'nats-server'))
  } catch (error) {
    if (found !== undefined) return found
    throw error
  }
}

async function build(folder: string): Promise<void> {
  const go = await which('go', ['/usr/local/go/bin'])
  if (go === undefined) throw new Error('neither nats-server nor go is on PATH')
  const env = { ...process.env, GOBIN: folder, GOFLAGS: '-mod=mod' }
  await run(go, ['install', MODULE], { env, timeoutMs: BUILD_MS })
}

async function versionOf(file: string): Promise<NatsBinary> {
  const version = /v?(\d+\.\d+\.\d+)/.exec(await run(file, ['--version']))?.[1]
  if (version === undefined) throw new Error(`${file} --version tells no version`)
  return { file, version }
}

/** Message schedules came with 2.12. */
function isNew({ version }: NatsBinary): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  return major > 2 || minor >= 12
}

/** `sync_interval` came with 2.10; an older server refuses to start with it. */
export function canSyncAlways({ version }: NatsBinary): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  return major > 2 || minor >= 10
}
