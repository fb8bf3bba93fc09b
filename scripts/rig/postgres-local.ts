import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** A Postgres that is installed on this machine. */
export interface LocalPostgres {
  /** The folder that has bin/. */
  readonly native: string
  readonly major: number
}

const DEBIAN = '/usr/lib/postgresql'

/** The newest one that is found; used only where the npm packages cannot be had. */
export function localPostgres(): LocalPostgres | undefined {
  return candidates()
    .flatMap((native) => {
      const major = majorOf(join(native, 'bin', 'postgres'))
      return major === undefined ? [] : [{ native, major }]
    })
    .sort((a, b) => b.major - a.major)[0]
}

function candidates(): readonly string[] {
  const debian = existsSync(DEBIAN) ? readdirSync(DEBIAN).map((name) => join(DEBIAN, name)) : []
  const path = (process.env.PATH ?? '').split(':').filter((folder) => folder !== '')
  return [...debian, ...path.map(dirname)].filter((native) =>
    ['postgres', 'initdb'].every((name) => existsSync(join(native, 'bin', name))),
  )
}

function majorOf(binary: string): number | undefined {
  try {
    const told = execFileSync(binary, ['--version'], { encoding: 'utf8' })
    const major = Number(/(\d+)/.exec(told)?.[1])
    return major >= 13 ? major : undefined
  } catch {
    return undefined
  }
}
