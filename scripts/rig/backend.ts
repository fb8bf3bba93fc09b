/** What the rig says about one server that tests may need. */
export interface BackendReport {
  /** For people: `postgres 18`, `pgbouncer`. */
  readonly name: string
  readonly available: boolean
  readonly version?: string
  /** Why it is not available, in one line. */
  readonly why?: string
  /** The command that gets it. */
  readonly command?: string
}

/** A server that runs, with what test processes need to find it. */
export interface Started {
  readonly report: BackendReport
  readonly env: Readonly<Record<string, string>>
  stop(): Promise<void>
}

export type Outcome = Started | BackendReport

export const FAMILIES = ['postgres', 'redis', 'nats', 'rabbitmq', 'sqs', 'kafka'] as const

/** Servers that are started together: what `--only` names. */
export type Family = (typeof FAMILIES)[number]

/** `redis,nats` as families. */
export function familiesOf(list: string): readonly Family[] {
  return list.split(',').map((name) => {
    const family = FAMILIES.find((known) => known === name)
    if (family !== undefined) return family
    throw new Error(`"${name}" is no server of the rig; it knows ${FAMILIES.join(', ')}`)
  })
}

/** A server that the environment may name, and that the rig starts otherwise. */
export interface Backend {
  readonly name: string
  readonly family: Family
  /** An older server, or another one of its kind: a short run does without. */
  readonly further?: true
  /** What the environment calls its address. */
  readonly variable: string
  /** Asks a server at an address that the environment gave. */
  answers(address: string): Promise<boolean>
  start(): Promise<{
    readonly env: Readonly<Record<string, string>>
    readonly version: string
    stop(): Promise<void>
  }>
  /** Gets it. */
  readonly command: string
}

/** A server of the user's is used and never stopped. */
export async function findOrStart(backend: Backend): Promise<Outcome> {
  const { name, variable, command } = backend
  const given = process.env[variable]
  if (given !== undefined) return await findGiven(name, variable, given, backend.answers)
  try {
    const { env, version, stop } = await backend.start()
    return { report: { name, available: true, version }, env, stop: () => stop() }
  } catch (error) {
    return unavailable(name, error, command)
  }
}

export async function findGiven(
  name: string,
  variable: string,
  address: string,
  answers: (address: string) => Promise<boolean>,
): Promise<Outcome> {
  if (!(await answers(address))) {
    const why = `no answer from the address in ${variable}`
    return unavailable(name, why, `start it, or unset ${variable}`)
  }
  return { report: { name, available: true }, env: { [variable]: address }, stop: async () => {} }
}

/** Why a further server of its kind is not available. */
export const NOT_AT_HOME = 'a run at home does without it'

export function notAtHome(name: string): BackendReport {
  return unavailable(name, NOT_AT_HOME, 'MILLRACE_DEPTH=full npm test')
}

export function unavailable(name: string, error: unknown, command: string): BackendReport {
  return { name, available: false, why: firstLine(error), command }
}

function firstLine(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error)
  return text.split('\n', 1)[0] ?? text
}
