import {
  type Backend,
  type BackendReport,
  FAMILIES,
  type Family,
  findOrStart,
  NOT_AT_HOME,
  notAtHome,
  type Outcome,
  type Started,
  unavailable,
} from './backend.ts'
import { ELASTICMQ_BACKEND } from './elasticmq-server.ts'
import { FAUXQS_BACKEND } from './fauxqs-server.ts'
import { KAFKA_BACKEND } from './kafka-server.ts'
import { NATS_BACKEND } from './nats-server.ts'
import { postgresBackends } from './postgres-backends.ts'
import { sweep } from './private-folder.ts'
import { RABBITMQ_BACKEND } from './rabbitmq-backend.ts'
import { REDIS_BACKENDS } from './redis-backends.ts'

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
  /** Default: all families. */
  readonly only?: readonly Family[] | undefined
  /** Default true: older servers and others of a kind, too. */
  readonly further?: boolean
}

/** Why a server that was not asked for is not available. */
export const LEFT_OUT = 'left out by whoever started the rig'

/** What starts slowest first. */
const BACKENDS: readonly Backend[] = [
  RABBITMQ_BACKEND,
  KAFKA_BACKEND,
  ELASTICMQ_BACKEND,
  FAUXQS_BACKEND,
  NATS_BACKEND,
  ...REDIS_BACKENDS,
]

/** Finds or starts every server that the tests need, side by side. */
export async function startRig(options: RigOptions): Promise<Rig> {
  sweep()
  const outcomes = await findOrStartAll(options.only ?? FAMILIES, options.further ?? true)
  const started = outcomes.filter((outcome) => 'report' in outcome)
  const backends = outcomes.map((outcome) => ('report' in outcome ? outcome.report : outcome))
  const stop = stopper(started)
  const missing = backends.filter(({ available, why }) => !available && why !== NOT_AT_HOME)
  if (options.require === 'all' && missing.length > 0) {
    await stop()
    throw new Error(
      missing.map(({ name, why, command }) => `${name}: ${why} (${command})`).join('; '),
    )
  }
  return { backends, env: Object.assign({}, ...started.map(({ env }) => env)), stop }
}

async function findOrStartAll(
  families: readonly Family[],
  withFurther: boolean,
): Promise<readonly Outcome[]> {
  const asked = BACKENDS.filter(({ family }) => families.includes(family))
  const chosen = asked.filter(({ further }) => withFurther || !further)
  const postgres = families.includes('postgres') ? postgresBackends(withFurther) : []
  const [first, rest] = await Promise.all([postgres, Promise.all(chosen.map(findOrStart))])
  const without = asked
    .filter((backend) => !chosen.includes(backend))
    .map(({ name }) => notAtHome(name))
  return [...first, ...rest, ...without, ...leftOut(families)]
}

/** Said as well, so that nobody takes them for tested. */
function leftOut(families: readonly Family[]): readonly BackendReport[] {
  const command = 'name it in --only or MILLRACE_RIG_ONLY, or leave that away'
  return FAMILIES.filter((family) => !families.includes(family)).map((family) =>
    unavailable(family, LEFT_OUT, command),
  )
}

/** Whoever asks again waits for the same end. */
function stopper(started: readonly Started[]): () => Promise<void> {
  const stopAll = async (): Promise<void> => {
    for (const server of started.toReversed()) await server.stop()
  }
  let stopped: Promise<void> | undefined
  return () => {
    stopped ??= stopAll()
    return stopped
  }
}
