import { type BackendReport, type Started, unavailable } from './backend.ts'
import { PGBOUNCER_COMMAND, startPgBouncer } from './pgbouncer.ts'
import { INSTALL_COMMAND } from './postgres-binaries.ts'
import { localPostgres } from './postgres-local.ts'
import { answers, startPostgres } from './postgres-server.ts'
import { sweep } from './private-folder.ts'

export type { BackendReport } from './backend.ts'

export interface Rig {
  readonly backends: readonly BackendReport[]
  /** For test processes: where each server is. */
  readonly env: Readonly<Record<string, string>>
  /** Stops what the rig started, in reverse order. Idempotent. */
  stop(): Promise<void>
}

export interface RigOptions {
  /** `all`: a server that is missing is an error; `available`: it is reported. */
  readonly require: 'all' | 'available'
}

/** The oldest and the newest major version that we support. */
export const POSTGRES_MAJORS: readonly number[] = [18, 13]

/** Finds or starts every server that the tests need. */
export async function startRig(options: RigOptions): Promise<Rig> {
  sweep()
  const started: Started[] = []
  const backends: BackendReport[] = []
  const rig: Rig = {
    backends,
    get env() {
      return Object.assign({}, ...started.map((server) => server.env))
    },
    stop: async () => {
      for (const server of started.splice(0).reverse()) await server.stop()
    },
  }
  const add = (outcome: Started | BackendReport): void => {
    if ('report' in outcome) started.push(outcome)
    backends.push('report' in outcome ? outcome.report : outcome)
  }
  for (const server of await postgresServers()) add(server)
  add(await pgBouncer(started))
  const missing = backends.filter((backend) => !backend.available)
  if (options.require === 'all' && missing.length > 0) {
    await rig.stop()
    throw new Error(
      missing.map(({ name, why, command }) => `${name}: ${why} (${command})`).join('; '),
    )
  }
  return rig
}

async function postgresServers(): Promise<readonly (Started | BackendReport)[]> {
  const given = process.env.MILLRACE_TEST_POSTGRES_URL
  if (given !== undefined)
    return [await givenPostgres('postgres', 'MILLRACE_TEST_POSTGRES_URL', given)]
  const own = await Promise.all(POSTGRES_MAJORS.map(ownPostgres))
  if (own.some((server) => 'report' in server)) return own
  const installed = await installedPostgres()
  return installed === undefined ? own : [...own, installed]
}

/** Without the npm packages the machine's own binaries are better than nothing: a private server of that version. */
async function installedPostgres(): Promise<Started | BackendReport | undefined> {
  const found = localPostgres()
  if (found === undefined) return undefined
  const name = `postgres ${found.major} (installed)`
  try {
    const { url, stop } = await startPostgres(found.major, { native: found.native })
    const env = { MILLRACE_TEST_POSTGRES_URL: url }
    return { report: { name, available: true }, env, stop: () => stop() }
  } catch (error) {
    return unavailable(name, error, INSTALL_COMMAND)
  }
}

/** A server of the user's: we use it and never stop it. */
async function givenPostgres(
  name: string,
  variable: string,
  url: string,
): Promise<Started | BackendReport> {
  if (!(await answers(url))) {
    return unavailable(
      name,
      `no answer from the address in ${variable}`,
      `start it, or unset ${variable}`,
    )
  }
  return { report: { name, available: true }, env: { [variable]: url }, stop: async () => {} }
}

async function ownPostgres(major: number): Promise<Started | BackendReport> {
  const name = `postgres ${major}`
  const variable = `MILLRACE_TEST_POSTGRES_${major}_URL`
  const given = process.env[variable]
  if (given !== undefined) return await givenPostgres(name, variable, given)
  try {
    const server = await startPostgres(major)
    return {
      report: { name, available: true },
      env: { [variable]: server.url },
      stop: () => server.stop(),
    }
  } catch (error) {
    return unavailable(name, error, INSTALL_COMMAND)
  }
}

async function pgBouncer(started: readonly Started[]): Promise<Started | BackendReport> {
  const given = process.env.MILLRACE_TEST_PGBOUNCER_URL
  if (given !== undefined)
    return await givenPostgres('pgbouncer', 'MILLRACE_TEST_PGBOUNCER_URL', given)
  const url = started.flatMap((server) => Object.values(server.env))[0]
  if (url === undefined)
    return unavailable('pgbouncer', 'no postgres to put it in front of', INSTALL_COMMAND)
  try {
    return await startPgBouncer(Number(new URL(url).port || 5432))
  } catch (error) {
    return unavailable('pgbouncer', error, PGBOUNCER_COMMAND)
  }
}
