import { findGiven, notAtHome, type Outcome, type Started, unavailable } from './backend.ts'
import { INSTALL_COMMAND } from './npm-package.ts'
import { PGBOUNCER_COMMAND, startPgBouncer } from './pgbouncer.ts'
import { localPostgres } from './postgres-local.ts'
import { answers, startPostgres } from './postgres-server.ts'

/** The newest major version that we support. */
const NEWEST = 18
/** The oldest one: a short run does without it. */
const OLDEST = 13

/** The Postgres servers, then the pooler in front of one of them. */
export async function postgresBackends(withFurther: boolean): Promise<readonly Outcome[]> {
  const servers = await postgresServers(withFurther)
  const started = servers.filter((server) => 'report' in server)
  return [...servers, await pgBouncer(started)]
}

async function postgresServers(withFurther: boolean): Promise<readonly Outcome[]> {
  const given = process.env.MILLRACE_TEST_POSTGRES_URL
  if (given !== undefined)
    return [await findGiven('postgres', 'MILLRACE_TEST_POSTGRES_URL', given, answers)]
  const own = await Promise.all([
    ownPostgres(NEWEST),
    withFurther ? ownPostgres(OLDEST) : notAtHome(named(OLDEST)),
  ])
  if (own.some((server) => 'report' in server)) return own
  const installed = await installedPostgres()
  return installed === undefined ? own : [...own, installed]
}

/** Without the npm packages the machine's own binaries are better than nothing: a private server of that version. */
async function installedPostgres(): Promise<Outcome | undefined> {
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

function named(major: number): string {
  return `postgres ${major}`
}

async function ownPostgres(major: number): Promise<Outcome> {
  const name = named(major)
  const variable = `MILLRACE_TEST_POSTGRES_${major}_URL`
  const given = process.env[variable]
  if (given !== undefined) return await findGiven(name, variable, given, answers)
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

async function pgBouncer(started: readonly Started[]): Promise<Outcome> {
  const given = process.env.MILLRACE_TEST_PGBOUNCER_URL
  if (given !== undefined)
    return await findGiven('pgbouncer', 'MILLRACE_TEST_PGBOUNCER_URL', given, answers)
  const url = started.flatMap((server) => Object.values(server.env))[0]
  if (url === undefined)
    return unavailable('pgbouncer', 'no postgres to put it in front of', INSTALL_COMMAND)
  try {
    return await startPgBouncer(Number(new URL(url).port || 5432))
  } catch (error) {
    return unavailable('pgbouncer', error, PGBOUNCER_COMMAND)
  }
}
