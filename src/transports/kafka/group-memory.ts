import { ask, type Cluster, withinLimit } from './client.ts'
import { codes, codesIn } from './fault.ts'

const BROKER = 4
const KEY = 'offsets.retention.minutes'
const KEYS = [KEY]
const MINUTES_A_DAY = 1_440

/**
 * What `startFrom: 'latest'` may cost groups that have no consumer for long, for people; see `Transport.facts`. Empty with
 * `earliest`, which repeats and does not lose.
 */
export async function groupMemoryFacts(
  cluster: Cluster,
  signal: AbortSignal,
): Promise<readonly string[]> {
  if (cluster.options.startFrom !== 'latest') return []
  const minutes = await keptMinutes(cluster, signal)
  const days = minutes === undefined ? '' : `, ${Number((minutes / MINUTES_A_DAY).toFixed(2))} days`
  return [
    `startFrom is latest: a group without a consumer for as long as the broker keeps its positions (${KEY}${days}) begins at the end again, and what was sent meanwhile is lost; earliest repeats instead`,
  ]
}

/** Undefined where the account may not ask for it, or the broker does not say. */
async function keptMinutes(cluster: Cluster, signal: AbortSignal): Promise<number | undefined> {
  const { asking, module } = cluster
  const look = asking.metadata({ topics: [] })
  const { brokers } = await withinLimit(cluster, 'asking for the brokers', look, signal)
  const [id, broker] = [...brokers][0] ?? []
  if (broker === undefined) return undefined
  const call = { cluster, client: asking, broker, what: 'asking for a setting of a broker', signal }
  const resource = {
    resourceType: BROKER,
    resourceName: `${id}`,
    configurationKeys: KEYS,
  } as const
  try {
    const { results } = await ask(call, module.describeConfigsV4.api, [resource], false, false)
    const value = Number(results[0]?.configs[0]?.value ?? Number.NaN)
    return Number.isNaN(value) ? undefined : value
  } catch (error) {
    if (codesIn(error).has(codes.clusterDenied)) return undefined
    throw error
  }
}
